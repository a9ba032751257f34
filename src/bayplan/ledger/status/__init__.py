"""How a workload is doing, in the same few words for every kind: written rules, one table."""
