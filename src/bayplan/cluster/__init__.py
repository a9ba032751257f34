"""The port `Cluster` and the engines behind it: one way in to anything that speaks Kubernetes objects."""
