"""Compute management for Kubernetes: records, places, isolates, rehearses, and keeps the fleet in order."""

__version__ = "0.1.0"
