"""Upstream's scheduler as the peer: `peers/scheduler`, a Go program, built once and run on a load's file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec

from bayplan.cluster.lab.toolchain import LabUnavailableError, cache_folder

_SOURCES = Path(__file__).parent / "peers" / "scheduler"
# The flags of the lab's own build: what it compiled of Kubernetes is not compiled again.
_BUILD = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o")
_SETTINGS = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}


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
    """The program, compiled if there is none of these sources yet. Raises LabUnavailableError."""
    sources = b"".join((_SOURCES / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    program = cache_folder() / "peers" / f"scheduler-{hashlib.sha256(sources).hexdigest()[:12]}"
    if program.exists():
        return program
    go = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), str(cache_folder() / "go" / "bin")]))
    if go is None:
        raise LabUnavailableError(
            "no Go here to build upstream's scheduler with",
            hint="put Go 1.26 or newer on PATH, or let `bayplan lab doctor --build` install it",
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        built = Path(scratch, program.name)
        command = [go, *_BUILD, str(built), "."]
        environment = {**os.environ, **_SETTINGS}
        done = subprocess.run(command, cwd=_SOURCES, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise LabUnavailableError(f"go build failed:\n{last}", hint="the Go module proxy must be reachable")
        built.rename(program)  # at once: a second builder sees all of it or nothing
    return program


def run(load: Path, percentage: int, parallelism: int, limit: int, placements: bool = False) -> PeerResult:
    """Decide a load's pods with percentageOfNodesToScore (0 is adaptive), at most `limit` measured steps (0 is all).

    Only with a parallelism of 1 are the placements the same each time.
    """
    options = {"load": load, "percentage": percentage, "parallelism": parallelism, "limit": limit}
    command = [str(build()), *(f"-{name}={value}" for name, value in options.items()), f"-placements={placements}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=PeerResult)
