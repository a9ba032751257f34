"""`bayplan cpu`: one file a subcommand, and what they draw."""
