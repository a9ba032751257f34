"""The log of a run: one JSON line for each thing that happened, in order, from which everything else can be drawn.

    with Writer(path) as log:
        log.write(Placed(t=12.0, pod="vision/train-3", node="h100-a-1", waited=0.5))
    for line in read(path):
        match line: ...

`t` is seconds since the scenario's start. A log begins with one Began and finishes with one Ended, which says whether
the run came to its end. Pods of one template share one Template line, so Created lines stay short and a run can still
be replayed from its log. Nothing in a log depends on the machine or on when it was written. It holds whole specs of
pods, so it is its owner's alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.simulate.private import open_private


class EventLogError(PermanentError):
    """A run's log cannot be read."""

    code = "BP-X013"


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="what"):
    """Something that happened."""

    t: float


class Began(Line, frozen=True, kw_only=True, tag="began"):
    """The run."""

    scenario: str
    digest: str
    """Of the scenario: equal where the scenarios are."""
    seed: int
    policy: str
    engine: str
    duration: float
    start: str
    """What the cluster's clock said."""


class NodeLine(Line, frozen=True, kw_only=True, tag="node"):
    """A node came, went, or changed."""

    node: str
    state: Literal["added", "removed", "ready", "lost", "cordoned", "uncordoned"]
    cpu: int = 0
    """Thousandths of a core; so in Created. This and the next two when it came."""
    memory: int = 0
    gpus: float = 0.0
    manifest: msgspec.Raw = msgspec.Raw(b"")
    """Its labels, taints and capacity, when it came."""


class Template(Line, frozen=True, kw_only=True, tag="template"):
    """The spec of pods that come."""

    id: int
    spec: msgspec.Raw


class Created(Line, frozen=True, kw_only=True, tag="created"):
    """A pod came."""

    pod: str
    """Namespace and name, with a slash; so everywhere."""
    template: int
    owner: str = ""
    """Kind and name of what controls it."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    cpu: int = 0
    memory: int = 0
    gpus: float = 0.0


class Placed(Line, frozen=True, kw_only=True, tag="placed"):
    """A pod was bound to a node."""

    pod: str
    node: str
    waited: float = 0.0
    wished: str = ""
    """Where somebody would have liked it."""
    why: str = ""
    """Why it is elsewhere: a plugin, or other words."""


class Refused(Line, frozen=True, kw_only=True, tag="refused"):
    """The scheduler found no place for a pod, for these reasons."""

    pod: str
    message: str


class Phase(Line, frozen=True, kw_only=True, tag="phase"):
    """A pod entered a phase."""

    pod: str
    phase: str
    reason: str = ""


class Gone(Line, frozen=True, kw_only=True, tag="gone"):
    """A pod is no more."""

    pod: str


class Happened(Line, frozen=True, kw_only=True, tag="event"):
    """An event of the scenario."""

    event: str
    did: tuple[str, ...] = ()


class Denied(Line, frozen=True, kw_only=True, tag="denied"):
    """The API server refused what somebody asked for."""

    action: str
    reason: str


class Stayed(Line, frozen=True, kw_only=True, tag="stayed"):
    """A VM was to migrate and did not."""

    vm: str
    """Namespace and id, with a slash."""
    node: str
    """The one that it was to leave."""
    reason: str


class Sample(Line, frozen=True, kw_only=True, tag="sample"):
    """How the cluster stands. Shares are of all that nodes have."""

    pending: int
    running: int
    nodes: int
    """That are ready."""
    cpu: float
    memory: float
    gpu: float
    """Requested."""
    fragmentation: float
    """Of what is free, the share that is of no use to the pods that are expected: GPUs, else CPU."""
    used_cpu: float = 0.0
    used_memory: float = 0.0
    used_gpu: float = 0.0


class Ended(Line, frozen=True, kw_only=True, tag="ended"):
    """The run is over."""

    complete: bool


_OfPods = Template | Created | Placed | Refused | Phase | Gone | Stayed
AnyLine = Began | NodeLine | _OfPods | Happened | Denied | Sample | Ended
_ENCODE = msgspec.json.Encoder().encode
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AnyLine)


class Writer:
    """A log that is being written. Without a path it goes nowhere."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = None if path is None else open_private(path)

    def write(self, line: Line) -> None:
        """Add a line."""
        if self._file is not None:
            self._file.write(_ENCODE(line) + b"\n")

    def close(self) -> None:
        """Whatever was written is on disk."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(path: Path) -> Iterator[AnyLine]:
    """The lines of a log. A last line that was cut off is passed over. Raises EventLogError, OSError."""
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith(b"\n"):
                return
            try:
                yield _DECODER.decode(text)
            except msgspec.DecodeError as error:
                raise EventLogError(f"{path}:{number}: not a line of a run's log: {error}") from error
