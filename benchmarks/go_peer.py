"""Peers that are Go programs over upstream's own packages: `peers/<name>`, built once of these sources and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bayplan.cluster.lab.toolchain import LabUnavailableError, cache_folder

# The flags of the lab's own build: what it compiled of Kubernetes is not compiled again.
_BUILD = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o")
_SETTINGS = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}


def build(name: str) -> Path:
    """The program, compiled if there is none of these sources yet. Raises LabUnavailableError."""
    sources = Path(__file__).parent / "peers" / name
    content = b"".join(each.read_bytes() for each in sorted(sources.iterdir()))
    program = cache_folder() / "peers" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if program.exists():
        return program
    go = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), str(cache_folder() / "go" / "bin")]))
    if go is None:
        raise LabUnavailableError(
            f"no Go here to build upstream's {name} with",
            hint="put Go 1.26 or newer on PATH, or let `bayplan lab doctor --build` install it",
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        built = Path(scratch, program.name)
        command = [go, *_BUILD, str(built), "."]
        environment = {**os.environ, **_SETTINGS}
        done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise LabUnavailableError(f"go build failed:\n{last}", hint="the Go module proxy must be reachable")
        built.rename(program)  # at once: a second builder sees all of it or nothing
    return program
