"""A copy of a cluster to try things on: read, kept in a file, brought to life in the embedded engine, asked."""
