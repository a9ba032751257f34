"""A real control plane on this machine: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK.

`Lab` is a context manager; everything runs on loopback, in a folder of its own, and leaves nothing behind.
"""
