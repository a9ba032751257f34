"""Upstream's scheduler as the peer: `peers/scheduler`, a Go program, built once and run on a load's file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from benchmarks import go_peer


class PeerResult(msgspec.Struct, frozen=True):
    """What the program prints. Only the steps after the warm-up count, but `node_of` has every pod."""

    decisions: int
    unschedulable: int
    seconds: float
    """Inside upstream's SchedulePod, by the wall clock."""
    cache_seconds: float
    """Besides: snapshots of the cache, and pods added to it and removed."""
    cpu_seconds: float
    """Of all cores, for both and the garbage collector."""
    p50_ms: float
    p99_ms: float
    go: str
    gomaxprocs: int
    node_of: dict[str, str] = {}
    """The node of each pod `namespace/name`, "" if it fitted nowhere; empty unless asked for."""


def build() -> Path:
    """The program. Raises LabUnavailableError."""
    return go_peer.build("scheduler")


def run(load: Path, percentage: int, parallelism: int, limit: int, placements: bool = False) -> PeerResult:
    """Decide a load's pods with percentageOfNodesToScore (0 is adaptive), at most `limit` measured steps (0 is all).

    Only with a parallelism of 1 are the placements the same each time.
    """
    options = {"load": load, "percentage": percentage, "parallelism": parallelism, "limit": limit}
    command = [str(build()), *(f"-{name}={value}" for name, value in options.items()), f"-placements={placements}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=PeerResult)
