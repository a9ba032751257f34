"""The live engine: the port `Cluster` over HTTP, on any Kubernetes API server, and the reflector that follows one."""
