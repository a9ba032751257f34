"""The machine's file system: this checkout, its Python and shared libraries, as one archive for the kernel to unpack.

Nothing is installed, mounted or shared: what the tests need is copied under the same paths, so no driver is needed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO

LEFT_OUT = {
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "ensurepip",
    "tkinter",
    "turtledemo",
    "site-packages",
    "dist-packages",
}
PACKAGES = (
    "msgspec",
    "pytest",
    "pytest-asyncio",
    "hypothesis",
    "syrupy",
    "click",
    "rich",
    "PyYAML",
    "prometheus-client",
)
FOLDER, FILE, LINK = 0o040755, 0o100755, 0o120777


def write_image(out: IO[bytes], checkout: Path, plan: dict[str, object]) -> None:
    """Write the archive (the `newc` format of cpio, Documentation/driver-api/early-userspace/buffer-format.rst)."""
    archive = Archive(out)
    for path in sorted(files_of(checkout)):
        archive.add(path)
    init = Path(__file__).with_name("init.py").read_bytes()
    python = str(Path(sys.executable).resolve())
    archive.entry("/init", FILE, f"#!{python}\n".encode() + init)
    archive.entry("/PLAN", FILE, json.dumps(plan).encode())
    archive.close()


class Archive:
    """Entries of a cpio archive, each folder before what is in it."""

    def __init__(self, out: IO[bytes]) -> None:
        self.out = out
        self.seen: set[str] = set()

    def entry(self, name: str, mode: int, data: bytes = b"", changed: int = 0) -> None:
        """One file, folder or link (its data is the target). Compiled Python goes by when its source `changed`."""
        if name in self.seen:
            return
        self.seen.add(name)
        path = name.lstrip("/").encode() + b"\0"
        fields = (len(self.seen), mode, 0, 0, 1, changed, len(data), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % each for each in fields) + path
        self.out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def add(self, path: Path) -> None:
        """A file or link of this machine under its own path; a folder that is a link here is one there."""
        for folder in reversed(path.parents[:-1]):
            if folder.is_symlink():
                self.entry(str(folder), LINK, str(folder.readlink()).encode())
                self.add(folder.resolve() / path.relative_to(folder))
                return
            self.entry(str(folder), FOLDER)
        if path.is_symlink():
            self.entry(str(path), LINK, str(path.readlink()).encode())
            self.add(path.parent / path.readlink())
        elif path.is_dir():
            self.entry(str(path), FOLDER)
        else:
            self.entry(str(path), FILE, path.read_bytes(), int(path.stat().st_mtime))

    def close(self) -> None:
        """The mark of the end."""
        self.entry("TRAILER!!!", 0)


def files_of(checkout: Path) -> Iterator[Path]:
    """Everything the tests need."""
    venv = Path(sys.prefix)
    own = [
        *walk(Path(sysconfig.get_path("stdlib"))),
        *(path for name in closure(PACKAGES) for path in installed(name)),
        *Path(sysconfig.get_path("purelib")).glob("*bayplan*.pth"),
    ]
    libraries = shared_libraries([Path(sys.executable).resolve(), *(each for each in own if ".so" in each.suffixes)])
    yield from own
    yield from libraries
    yield from (venv / "pyvenv.cfg", *(venv / "bin").glob("python*"))
    yield from walk(checkout / "src")
    yield from (checkout / "pyproject.toml", checkout / "tests/__init__.py", checkout / "tests/conftest.py")
    yield from walk(checkout / "tests/node", left_out=set())


def walk(folder: Path, left_out: set[str] = LEFT_OUT) -> Iterator[Path]:
    """The files below a folder, without what no test here reads."""
    for path in sorted(folder.iterdir()):
        if path.name in left_out or path.name.startswith("config-") or path.suffix in (".a", ".exe"):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from walk(path, left_out)
        elif not path.name.endswith((".opt-1.pyc", ".opt-2.pyc")):
            yield path


def closure(names: Iterable[str]) -> set[str]:
    """The installed distributions that these need, themselves included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower()
        if name in found:
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # needed on another system or by an extra only
        found.add(name)
        waiting += [match[0] for each in needs if "extra ==" not in each and (match := re.match(r"[\w.-]+", each))]
    return found


def installed(name: str) -> list[Path]:
    """The files of one distribution."""
    listed = distribution(name).files or []
    paths = (Path(str(each.locate())) for each in listed if not str(each).startswith(".."))
    return [each for each in paths if each.is_file()]


def shared_libraries(binaries: Iterable[Path]) -> set[Path]:
    """What the dynamic linker would load for these."""
    listing = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", listing, re.MULTILINE)
    return {Path(each) for each in found}
