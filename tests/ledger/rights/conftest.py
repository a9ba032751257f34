"""The lab of these tests."""

from __future__ import annotations

from tests.cluster.lab_fixture import lab

__all__ = ["lab"]
