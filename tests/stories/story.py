"""A story: what is done to a cluster step by step, and what to wait for before looking. Data, read from YAML.

Each step does something (apply, kubectl, each, fail, revive), waits until the cluster looks as `until` says, and is
then observed: the objects of the kinds in `see`, the Events that came during the step, and what kubectl answered.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bayplan.cluster.lab.toolchain import chosen_minor

FOLDER = Path(__file__).parent
Doc = dict[str, Any]


class Until(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So many objects (any number but none, if not said) of a kind, or of a kind and name, look like this."""

    of: str
    like: Doc = {}
    count: int | None = None

    def holds(self, objects: Iterable[Doc]) -> bool:
        """Whether these objects are as waited for."""
        found = len([*self.among(objects)])
        return found > 0 if self.count is None else found == self.count

    def among(self, objects: Iterable[Doc]) -> Iterable[Doc]:
        """The objects that are meant."""
        kind, _, name = self.of.partition("/")
        for each in objects:
            if each["kind"] == kind and (not name or each["metadata"]["name"] == name) and is_like(each, self.like):
                yield each


class Each(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kubectl call for each object that is meant, oldest names first; `$NAME` stands for its name."""

    of: str
    kubectl: str
    like: Doc = {}
    most: int = 100


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a story."""

    tell: str
    apply: list[Doc] = []
    kubectl: list[str] = []
    each: Each | None = None
    fail: str = ""
    """A node whose kubelet falls silent."""
    revive: str = ""
    until: list[Until] = []
    within: float = 40.0
    hold: float = 0.0
    """How long the cluster must then stay as it is, in seconds: for what must not happen."""


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A difference that cannot be avoided: where (a shell pattern on the place), after which step, and why."""

    at: str
    reason: str
    step: int | None = None
    kubernetes: str | None = None
    """The minor that alone does so, if the lab's others tell what the embedded engine tells."""

    def covers(self, step: int, place: str) -> bool:
        """Whether a difference is meant."""
        here = self.step in (None, step) and self.kubernetes in (None, chosen_minor())
        return here and fnmatch.fnmatchcase(place, self.at)


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole story."""

    title: str
    see: list[str]
    steps: list[Step]
    name: str = ""
    nodes: list[str] = []
    """Nodes of its own, tainted and labelled `story=<name>`; those of a step with `apply` come later."""
    differences: list[Known] = []

    @property
    def namespace(self) -> str:
        """Where it takes place."""
        return f"story-{self.name}"


def stories() -> Mapping[str, Story]:
    """Every story there is, by name."""
    return {path.stem: read(path.read_text(), path.stem) for path in sorted(FOLDER.glob("*.yaml"))}


def read(text: str, name: str) -> Story:
    """A story from its text."""
    return msgspec.convert({**yaml.safe_load(text), "name": name}, Story)


def is_like(found: Any, wanted: Any) -> bool:
    """Whether a document has all that a smaller one has; each element of a list must be like one that is there."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(is_like(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(is_like(one, each) for one in found) for each in wanted)
    return bool(found == wanted)
