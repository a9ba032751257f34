"""Control groups, versions 1 and 2, behind one protocol."""
