"""Fixtures of the tests of VMs."""

from tests.cluster.lab_fixture import lab

__all__ = ["lab"]
