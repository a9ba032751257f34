"""CPU burst: a quota that gives way for a moment, and returns."""
