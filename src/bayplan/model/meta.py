"""What every Kubernetes object has in common, and the rules by which wire objects become structs.

- Structs are frozen and read-only views: they hold the fields that are read somewhere, unknown fields are passed over.
  What is written back is built from the stored bytes, never from a struct.
- A missing field is Go's zero value (`""`, `0`, `()`, `{}`), so access never fails. A Go pointer without an API
  default is `X | None`; one that the API server always fills in is plain X with that default.
- A time is its RFC 3339 text, or None. A quantity is its text. An IntOrString is `int | str`.
- Attributes are snake_case; initialisms that camel case cannot guess (`podIP`) name their wire key.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

ResourceList = dict[str, str]


class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The base of every struct here. A frozen tree of these holds no cycles, so the collector may pass it by."""


class OwnerReference(Wire, frozen=True):
    """Who an object lives and dies with."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """metav1.ObjectMeta. `managed_fields` stays unread bytes; they are empty when it is missing."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: msgspec.Raw = msgspec.Raw()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class KubernetesObject(Wire, frozen=True):
    """A top-level object. Kind and group version belong to the class: a list's items do not repeat them."""

    KIND: ClassVar[str] = ""
    API_VERSION: ClassVar[str] = "v1"

    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Wire, frozen=True):
    """One expression: operator In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """Labels and expressions that must all hold. Empty selects everything; a missing selector selects nothing."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Wire, frozen=True):
    """The conditions of all kinds: each kind fills in some of the fields."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    last_update_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of that type, if it is there."""
    for one in conditions:
        if one.type == kind:
            return one
    return None


class ObjectReference(Wire, frozen=True):
    """The object that an Event or a volume speaks of."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
