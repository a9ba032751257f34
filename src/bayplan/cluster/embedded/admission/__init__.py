"""From a client's bytes to a stored object: decode, default, mutate, validate; in kube-apiserver's order and words."""
