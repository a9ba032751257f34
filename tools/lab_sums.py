"""Writes src/bayplan/cluster/lab/go.sum anew: the checksums of every release's modules, for every platform.

Run it after a change of `releases.py`: `.venv/bin/python tools/lab_sums.py` (Go on PATH, the module proxy reachable).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from bayplan.cluster.lab import releases

# `tidy` looks at every platform; a build from the short go.mod needs a few lines that `tidy` drops.
_STEPS = (["mod", "tidy"], ["list", "-mod=mod", "-deps", "tool"])


def main() -> None:
    """Ask Go, release by release, and put the answers together."""
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0"}
    lines: set[str] = set()
    for release in releases.RELEASES.values():
        with tempfile.TemporaryDirectory() as folder:
            for step in _STEPS:
                Path(folder, "go.mod").write_text(release.go_mod())
                command = ["go", *step]
                subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
            lines.update(Path(folder, "go.sum").read_text().splitlines())
    Path(releases.__file__).with_name("go.sum").write_text("".join(f"{line}\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
