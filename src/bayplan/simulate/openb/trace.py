"""Reading the trace's two files, and the workload that the paper makes of them.

Nodes have `sn, cpu_milli, memory_mib, gpu, model`; pods `name, cpu_milli, memory_mib, num_gpu, gpu_milli` and where the
trace has it `gpu_spec`, the models that will do, joined by `|`. When they came and went is read where it is asked for:
`creation_time`, `scheduled_time` (empty: it never was) and `deletion_time` in seconds, and `pod_phase`. Other columns
are passed over.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.scheduling.gpus.asking import WHOLE

T = TypeVar("T")
_SECONDS = re.compile(r"[0-9]{1,11}(\.[0-9]*)?")
"""Some write whole numbers with a point."""


class TraceError(PermanentError):
    """A trace file cannot be read."""

    code = "BP-X020"


class TraceNode(msgspec.Struct, frozen=True):
    """A node of the trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class Times(msgspec.Struct, frozen=True):
    """When a pod came and went, in seconds since the trace began."""

    created: float
    scheduled: float | None = None
    deleted: float | None = None
    phase: str = ""


class TracePod(msgspec.Struct, frozen=True):
    """A pod of the trace. `gpu_milli` is of each GPU."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()
    times: Times | None = None
    """Where they were asked for."""

    @property
    def total_gpu(self) -> int:
        """Thousandths of a GPU, all together."""
        return self.gpus * self.gpu_milli


class Trace(msgspec.Struct, frozen=True):
    """A cluster, and the pods that come to it."""

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]

    @property
    def capacity(self) -> int:
        """Thousandths of a GPU that there are."""
        return WHOLE * sum(node.gpus for node in self.nodes)


def read_trace(nodes: Path, pods: Path, *, timed: bool = False) -> Trace:
    """Both files. `timed`: its pods must say when they came. Raises TraceError, which names file, line and column."""
    trace = Trace(
        tuple(_rows(nodes, ("sn", "cpu_milli", "memory_mib", "gpu", "model"), _node)),
        tuple(_rows(pods, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), _timed_pod if timed else _pod)),
    )
    for path, found, what in ((nodes, trace.nodes, "nodes"), (pods, trace.pods, "pods")):
        if not found:
            raise TraceError(f"{path}: no {what}")
    return trace


def _rows(path: Path, columns: Sequence[str], make: Callable[[dict[str, str]], T]) -> Iterator[T]:
    """What each row makes. The first column is a name, which stands once."""
    lines: dict[str, int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # spreadsheets write a mark of the byte order
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: no column {missing[0]!r}; it needs {', '.join(columns)}")
            for row in reader:
                try:
                    made = make(row)
                    if (first := lines.setdefault(row[columns[0]], reader.line_num)) != reader.line_num:
                        raise ValueError(f"{columns[0]}: {row[columns[0]]!r} stands on line {first} already")
                except (ValueError, TypeError) as error:
                    raise TraceError(f"{path}:{reader.line_num}: {error}") from error
                yield made
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error


def _number(row: dict[str, str], column: str) -> int:
    text = row[column] or ""  # a short row has None here
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{column}: expected a whole number, not {text!r}")
    return int(text)


def _name(row: dict[str, str], column: str) -> str:
    if not row[column]:
        raise ValueError(f"{column}: is empty")
    return row[column]


def _node(row: dict[str, str]) -> TraceNode:
    cpu, memory, gpus = (_number(row, column) for column in ("cpu_milli", "memory_mib", "gpu"))
    return TraceNode(_name(row, "sn"), cpu, memory, gpus, row["model"] or "")


def _pod(row: dict[str, str]) -> TracePod:
    cpu, memory, gpus, milli = (_number(row, each) for each in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    if gpus and not 0 < milli <= WHOLE:
        raise ValueError(f"gpu_milli: expected 1 to {WHOLE}, not {milli}")
    if gpus > 1 and milli < WHOLE:
        raise ValueError("gpu_milli: a share is of one GPU")
    models = tuple(filter(None, (row.get("gpu_spec") or "").split("|")))
    return TracePod(_name(row, "name"), cpu, memory, gpus, milli if gpus else 0, models)


def _timed_pod(row: dict[str, str]) -> TracePod:
    pod = _pod(row)
    created = _seconds(row, "creation_time")
    if created is None:
        raise ValueError("no creation_time; bayplan simulate openb takes traces without times")
    scheduled, deleted = (_seconds(row, column) for column in ("scheduled_time", "deletion_time"))
    before, since = "creation_time", created
    for column, at in (("scheduled_time", scheduled), ("deletion_time", deleted)):
        if at is not None and at < since:
            raise ValueError(f"{column}: {at:.16g} is before {before}, {since:.16g}")
        before, since = (before, since) if at is None else (column, at)
    return msgspec.structs.replace(pod, times=Times(created, scheduled, deleted, row.get("pod_phase") or ""))


def _seconds(row: dict[str, str], column: str) -> float | None:
    """None where there is nothing, which some write as nan."""
    text = row.get(column) or ""
    if text.lower() in ("", "nan"):
        return None
    if not _SECONDS.fullmatch(text):
        raise ValueError(f"{column}: expected seconds, not {text!r}")
    return float(text)


def arrivals(trace: Trace, seed: int, inflate: float) -> list[TracePod]:
    """The pods in random order, and after them random ones again, until they ask for `inflate` of all GPUs.

    Where they ask for more than that to begin with, random ones are left out instead.
    """
    chance = random.Random(f"{seed}/arrivals")
    pods = sorted(trace.pods, key=lambda pod: pod.name)
    originals = pods.copy()
    chance.shuffle(pods)
    total, most = sum(pod.total_gpu for pod in pods), inflate * trace.capacity
    while pods and total > most:
        total -= pods.pop(chance.randrange(len(pods))).total_gpu
    any_asks = any(pod.total_gpu for pod in originals)
    while any_asks and total < most:
        again = chance.choice(originals)
        # Of each GPU, not of all together: so it is in the authors' simulator (tuneUpPods), whose workload this is. So
        # the last pod may ask for more than was left.
        if total + again.gpu_milli > most:
            break
        total += again.total_gpu
        pods.append(msgspec.structs.replace(again, name=f"{again.name}-again-{len(pods)}"))
    return pods


def renamed(trace: Trace, seed: int) -> list[TraceNode]:
    """The nodes in random order: of equals the first is taken, so the order is a matter of chance, too."""
    nodes = sorted(trace.nodes, key=lambda node: node.name)
    random.Random(f"{seed}/nodes").shuffle(nodes)
    return [msgspec.structs.replace(node, name=f"{number:04d}-{node.name}") for number, node in enumerate(nodes)]
