"""A Go value as the library spew prints it: the kubelet's checksums are those of such a text.

    {PolicyName:(string)static Entries:(map[string]string)map[a:4-7 b:8] Checksum:(checksum.Checksum)0}

Only in a struct is a value's type printed, in front of it. Keys of maps are sorted; what a pointer points to stands
after `<*>`; a nil is `<nil>`. Each function here makes the printer of a type; printers are given what JSON holds.
Source of truth: k8s.io/utils/dump ForHash, k8s.io/kubernetes/pkg/kubelet/checkpointmanager/checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Printer = Callable[[Any], str]
NIL = "<nil>"

_OFFSET, _PRIME, _ALL = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


class Field(NamedTuple):
    """A field of a struct: its name in Go, in JSON, its type, how it is printed, and what a missing one is."""

    name: str
    key: str
    kind: str
    show: Printer
    missing: Any = None


def text(value: str | None) -> str:
    """A string."""
    return value or ""


def number(value: int | None) -> str:
    """A whole number."""
    return str(value or 0)


def mapping(show: Printer, order: Callable[[str], Any] = str.encode) -> Printer:
    """A map; `order` gives a key's place: strings go by their bytes."""

    def printed(value: Mapping[str, Any] | None) -> str:
        if value is None:
            return NIL
        return f"map[{' '.join(f'{key}:{show(value[key])}' for key in sorted(value, key=order))}]"

    return printed


def sequence(show: Printer) -> Printer:
    """A slice."""

    def printed(value: list[Any] | None) -> str:
        return NIL if value is None else f"[{' '.join(map(show, value))}]"

    return printed


def pointer(show: Printer) -> Printer:
    """A pointer to something."""

    def printed(value: Any) -> str:
        return NIL if value is None else f"<*>{show(value)}"

    return printed


def struct(*fields: Field) -> Printer:
    """A struct."""

    def printed(value: Mapping[str, Any] | None) -> str:
        given = value or {}
        shown = (f"{each.name}:({each.kind}){each.show(given.get(each.key, each.missing))}" for each in fields)
        return f"{{{' '.join(shown)}}}"

    return printed


def checksum(dump: str) -> int:
    """FNV-1a in 32 bits."""
    found = _OFFSET
    for byte in dump.encode():
        found = (found ^ byte) * _PRIME & _ALL
    return found
