"""How a check looks at a pod, and how it puts into words who breaks its rule.

A check takes a pod's annotations and spec and returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from bayplan.cluster.embedded.admission.fields import Doc

T = TypeVar("T")


class Finding(NamedTuple):
    """A broken rule: its short name, and who breaks it how."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Annotations = Mapping[str, str]
Check = Callable[[Annotations, Doc], Finding | None]


def containers(spec: Doc) -> Iterator[Doc]:
    """All of them, in upstream's order."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field, ())


def context_of(holder: Doc) -> Doc:
    """The security context of a pod spec or a container."""
    context: Doc = holder.get("securityContext", {})
    return context


def listed(names: Sequence[str]) -> str:
    """`"a", "b"`."""
    return '"' + '", "'.join(names) + '"'


def plural(word: str, number: int) -> str:
    """The word as it stands before so many things."""
    return word if number == 1 else f"{word}s"


def named(word: str, names: Sequence[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{plural(word, len(names))} {listed(names)}"


def where(spec: Doc, is_bad: Callable[[Doc], bool]) -> list[str]:
    """The containers that do it."""
    return [container["name"] for container in containers(spec) if is_bad(context_of(container))]


def setters(spec: Doc, is_bad: Callable[[Doc], bool]) -> str:
    """Who does it, the pod itself included: `pod and container "a"`."""
    found = ["pod"] if is_bad(context_of(spec)) else []
    names = where(spec, is_bad)
    return " and ".join([*found, named("container", names)] if names else found)


def values(spec: Doc, of: Callable[[Doc], T]) -> list[T]:
    """What the security contexts say, the pod's own first."""
    return [of(context_of(holder)) for holder in (spec, *containers(spec))]
