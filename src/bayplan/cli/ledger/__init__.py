"""`bayplan ledger`: one file a subcommand, and what they print."""
