"""A cluster under load: scenarios, the load they stand for, and the account of what became of it."""
