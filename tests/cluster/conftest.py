"""Fixtures of every test of the cluster room."""

from tests.cluster.lab_fixture import lab

__all__ = ["lab"]
