"""What changed: old facts and a new object in; rows, events and periods out. Pure."""
