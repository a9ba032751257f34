"""What Kubernetes objects look like: a table of every type, and the decoder that it drives.

`kubernetes.json` is made by `tools/schema` from the Go types and the OpenAPI document of Kubernetes 1.36.
"""
