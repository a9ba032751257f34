"""The kinds that are neither pods nor make them: one module a kind, each with its `STRATEGY`."""
