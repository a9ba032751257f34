"""What happened on a cluster, in a file: recorded from a live API, replayed under another policy."""
