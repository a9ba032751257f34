"""The process on a node: watches, measures, and, when told to, writes; the shell of `node`."""
