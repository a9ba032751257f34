"""Pods and pod templates: their defaults and their rules, container by container and for the whole spec."""
