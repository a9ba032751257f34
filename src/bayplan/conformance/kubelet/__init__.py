"""Families of the kubelet's resource managers: CPUs, memory, topology."""
