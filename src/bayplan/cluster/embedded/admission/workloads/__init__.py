"""The kinds that make pods: one module a kind, each with its `STRATEGY`."""
