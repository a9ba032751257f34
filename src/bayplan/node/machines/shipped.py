"""The machines that come with the package, by name: shapes of real ones, each file with its sources and assumptions."""

from __future__ import annotations

import difflib
import functools
import importlib.resources

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.node.machine import Machine
from bayplan.node.machines.reading import read_machine

_SUFFIX = ".yaml"
_PLACE = importlib.resources.files("bayplan.node.machines") / "shapes"


class UnknownMachine(PermanentError):
    """There is no machine of that name."""

    code = "BP-N043"

    def __init__(self, name: str) -> None:
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        meant = f"did you mean {', '.join(near)}? " if near else ""
        super().__init__(f'no machine is named "{name}"', hint=f"{meant}bayplan cpu topology --list shows all of them")


@functools.cache
def names() -> tuple[str, ...]:
    """All of them, in order."""
    found = (each.name for each in _PLACE.iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


@functools.cache
def named(name: str) -> Machine:
    """One of them. Raises UnknownMachine."""
    if name not in names():
        raise UnknownMachine(name)
    return read_machine(msgspec.yaml.decode((_PLACE / f"{name}{_SUFFIX}").read_bytes()), f"{name}{_SUFFIX}")
