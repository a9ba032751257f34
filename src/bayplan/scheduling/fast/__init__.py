"""The same decisions, fast: columns of nodes, rows of totals per pod shape. `scheduler` is the way in."""
