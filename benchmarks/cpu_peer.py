"""The kubelet's own CPU selection and hints as the peer: `peers/cpumanager`, one process that answers questions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bayplan.node.machine import Topology
from bayplan.node.sets import CpuSet, format_list
from benchmarks import go_peer


class Question(msgspec.Struct, frozen=True):
    """What to select, on which machine."""

    topology: Topology
    available: CpuSet
    count: int
    function: str
    """packed, distributed or hints."""
    prefer_cache: bool = False
    group: int = 1


class PeerHint(msgspec.Struct, frozen=True):
    """NUMA nodes that would do."""

    nodes: list[int]
    preferred: bool


class Answer(msgspec.Struct, frozen=True):
    """What the program prints."""

    nanos: list[int]
    """CPU time of each run, on one core."""
    go: str
    chosen: str = ""
    hints: list[PeerHint] = []


class Peer:
    """The program, running."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ask(self, question: Question, runs: int) -> Answer:
        """Ask a question so many times over."""
        asked = {
            **{name: getattr(question, name) for name in ("count", "function", "prefer_cache", "group")},
            "cpus": question.topology.cpus,
            "available": format_list(question.available),
            "runs": runs,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(asked) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Answer)


@contextmanager
def started() -> Iterator[Peer]:
    """The program on one core, for as long as the body runs. Raises LabUnavailableError."""
    environment = {**os.environ, "GOMAXPROCS": "1"}
    with subprocess.Popen(
        [str(go_peer.build("cpumanager"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        yield Peer(process)
