"""What users and operators do to a cluster, as values; `driver` does them."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.model.clock import Instant
from bayplan.simulate.manifests import Made


class Action(msgspec.Struct, frozen=True):
    """Something that somebody does to the cluster."""


class Create(Action, frozen=True):
    """Create an object."""

    made: Made


class CreateOwned(Create, frozen=True):
    """Create an object that another one owns, which is created before it unless it is there."""

    owner: Made


class Target(Action, frozen=True):
    """Something done to an object that is there, or was."""

    kind: Kind
    namespace: str
    name: str


class Delete(Target, frozen=True):
    """Delete it."""


class Scale(Target, frozen=True):
    """Set its replicas."""

    replicas: int


class Patch(Target, frozen=True):
    """Merge-patch it."""

    patch: dict[str, Any]


class Timed(msgspec.Struct, frozen=True):
    """An action and when it is due."""

    at: Instant
    action: Action


class MayLeave(Target, frozen=True):
    """Ask whether budgets would let a pod go; nothing is changed."""


class Evict(Target, frozen=True):
    """Ask for a pod's removal, as its budgets allow."""
