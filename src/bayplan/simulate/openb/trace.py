"""Reading the trace's two files, and the workload that the paper makes of them.

Nodes have `sn, cpu_milli, memory_mib, gpu, model`; pods `name, cpu_milli, memory_mib, num_gpu, gpu_milli` and where the
trace has it `gpu_spec`, the models that will do, joined by `|`, and when they came and went. Other columns are passed
over.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.scheduling.gpus.asking import WHOLE

T = TypeVar("T")


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


class TracePod(msgspec.Struct, frozen=True):
    """A pod of the trace. `gpu_milli` is of each GPU."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()
    created: str = ""
    """Seconds since the trace began, as it is written; so the next two, where the trace has them."""
    scheduled: str = ""
    deleted: str = ""
    phase: str = ""

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


def read_trace(nodes: Path, pods: Path) -> Trace:
    """Both files. Raises TraceError, which names file, line and column."""
    return Trace(
        tuple(_rows(nodes, ("sn", "cpu_milli", "memory_mib", "gpu", "model"), _node)),
        tuple(_rows(pods, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), _pod)),
    )


def _rows(path: Path, columns: Sequence[str], make: Callable[[dict[str, str]], T]) -> Iterator[T]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: no column {missing[0]!r}; it needs {', '.join(columns)}")
            for row in reader:
                try:
                    yield make(row)
                except (ValueError, TypeError) as error:
                    raise TraceError(f"{path}:{reader.line_num}: {error}") from error
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
    told = (row.get(column) or "" for column in ("creation_time", "scheduled_time", "deletion_time", "pod_phase"))
    return TracePod(_name(row, "name"), cpu, memory, gpus, milli if gpus else 0, models, *told)


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
