"""`bayplan simulate`: one file a subcommand, and what they print."""
