"""Names that must not be mixed up: each kind of id is a type of its own, free at run time."""

from __future__ import annotations

from typing import NamedTuple, NewType

from bayplan.model.errors import PermanentError

Uid = NewType("Uid", str)
"""What the API server gave one object, once; a new object of the same name has another."""
NamespaceName = NewType("NamespaceName", str)
NodeName = NewType("NodeName", str)
WorkerId = NewType("WorkerId", str)
"""A process that holds a share of a device."""
DeviceId = NewType("DeviceId", str)
"""A device on a node, in the words of its vendor: `GPU-8f6a...`."""


class IdError(PermanentError, ValueError):
    """The text is no id of that kind."""

    code = "BP-M004"


class Ref(NamedTuple):
    """An object by kind and name; `namespace` is empty for what belongs to the whole cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class PodId(NamedTuple):
    """One pod and no later one of its name. `str()` is what people call it: `namespace/name`."""

    namespace: str
    name: str
    uid: Uid

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ContainerName(NamedTuple):
    """A container by its place in a pod, whichever run of it."""

    pod: PodId
    name: str

    def __str__(self) -> str:
        return f"{self.pod}/{self.name}"


class ContainerId(NamedTuple):
    """One run of a container, as its runtime names it: `containerd://3f2a...`."""

    runtime: str
    id: str

    def __str__(self) -> str:
        return f"{self.runtime}://{self.id}"

    @classmethod
    def parse(cls, text: str) -> ContainerId:
        """The id in a container status. Raises IdError."""
        runtime, separator, name = text.partition("://")
        if not (runtime and separator and name):
            raise IdError(f"container id {text!r}: expected <runtime>://<id>")
        return cls(runtime, name)
