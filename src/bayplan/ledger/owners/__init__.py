"""Whose a pod is: the controllers above GPU pods, whatever their kinds, in whatever order they become known."""

from __future__ import annotations

from bayplan.ledger.owners.owners import CYCLE, UNREADABLE, Owners, Told, Watch
from bayplan.ledger.owners.workload import PodLink

__all__ = ["CYCLE", "UNREADABLE", "Owners", "PodLink", "Told", "Watch"]
