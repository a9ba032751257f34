"""The embedded engine as a Kubernetes API on loopback: TLS, a token, and what kubectl expects to find."""
