"""The pod or the workload that a person means: a name, `namespace/name`, or a uid; for workloads `kind/name` too, as
kubectl has it (`job.batch/name`), and `namespace/kind/name`, as answers have it.

A name that was used several times means the latest holder of it. One that stands in several namespaces or clusters at
once is not guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import sqlalchemy as sa

from bayplan.ledger.questions.asking import EVERYTHING, Scope, read
from bayplan.ledger.rows import GpuPod, GpuWorkload
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.errors import PermanentError

R = TypeVar("R", GpuPod, GpuWorkload)


class UnknownNameError(PermanentError):
    """The ledger has never seen a GPU pod, or a workload of GPU pods, of that name."""

    code = "BP-D042"


class AmbiguousNameError(PermanentError):
    """Several things go by the name."""

    code = "BP-D043"


async def find_pod(store: Readable, word: str, scope: Scope = EVERYTHING) -> GpuPod:
    """A pod. Raises UnknownNameError, AmbiguousNameError, StoreUnavailableError, StoreRefusedError."""
    word = word.removeprefix("pod/").removeprefix("pods/")
    namespace, kind, name = _places(word)
    if namespace and kind.lower() in ("pod", "pods"):
        word = f"{namespace}/{name}"
    return _only(await _named(store, GpuPod, word, scope), word, "GPU pod")


async def find_workload(store: Readable, word: str, scope: Scope = EVERYTHING) -> GpuWorkload | GpuPod:
    """A workload, else a pod. Raises as `find_pod`."""
    found: list[GpuWorkload] = await _named(store, GpuWorkload, word, scope)
    if not found and "/" in word:
        namespace, kind, name = _places(word)
        within = f"{namespace}/{name}" if namespace else name
        named: list[GpuWorkload] = await _named(store, GpuWorkload, within, scope)
        found = [each for each in named if _is_of(each, kind.lower())]
    if found:
        return _only(found, word, "workload")
    try:
        return await find_pod(store, word, scope)
    except UnknownNameError as error:
        raise UnknownNameError(f'"{word}": the ledger knows no such workload or GPU pod', hint=error.hint) from error


def _places(word: str) -> tuple[str, str, str]:
    """`namespace/kind/name`, or `kind/name`: what of it there is."""
    parts = word.split("/")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    kind, _, name = word.rpartition("/")
    return "", kind, name


def _is_of(row: GpuWorkload, word: str) -> bool:
    """Whether a workload is of the kind that is called so: `job`, `jobs`, `job.batch`, `job.v1.batch`."""
    name, dot, group = word.partition(".")
    of_group, _, version = row.group_version.rpartition("/")
    if name not in (row.kind.lower(), f"{row.kind.lower()}s"):
        return False
    return not dot or group in (of_group, f"{version}.{of_group}")


async def _named(store: Readable, kind: type[R], word: str, scope: Scope) -> list[R]:
    columns = TABLES[kind].c
    namespace, slash, name = word.partition("/")
    named = sa.and_(columns.namespace == namespace, columns.name == name) if slash else columns.name == word
    return await read(store, kind, scope, sa.or_(columns.uid == word, named))


def _only(found: Sequence[R], word: str, what: str) -> R:
    if not found:
        raise UnknownNameError(
            f'"{word}": the ledger knows no such {what}',
            hint="bayplan ledger get pods -A shows those that are there now",
        )
    latest: dict[tuple[str, ...], R] = {}
    for each in sorted(found, key=lambda row: row.created_at):
        latest[each.cluster, each.namespace, getattr(each, "kind", "")] = each
    if len(latest) > 1:
        places = ", ".join(sorted(" ".join(filter(None, (c, f"{n}/{k}" if k else n))) for c, n, k in latest))
        raise AmbiguousNameError(
            f'"{word}" is in several places: {places}',
            hint="say which: -n NAMESPACE, --cluster NAME, KIND/NAME or a uid",
        )
    return next(iter(latest.values()))
