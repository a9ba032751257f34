"""Objects as kubectl's rows: the columns of their kind, and around them namespace, labels, GPUs, the kind's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.gpus import gpu_text
from bayplan.cli.printers import Column, Listing, Row, ordered
from bayplan.cli.resources import called
from bayplan.cluster.kinds import KINDS, POD, Kind
from bayplan.cluster.tables.columns import AGE, NAME, labels_text
from bayplan.cluster.tables.table import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.cluster.objects import Object
    from bayplan.ledger.differ.gpus import GpuVendors
    from bayplan.model.clock import Instant

    Around = list[tuple[str, Callable[[Object], str]]]


class Style(msgspec.Struct, frozen=True):
    """Which columns of a kind are shown, and what stands around them."""

    wide: bool = False
    namespace: bool = False
    labels: bool = False
    prefix: bool = False
    """Whether names say their kind: `pod/web`."""
    vendors: GpuVendors | None = None
    """Which resources are GPUs, where others are set than are known."""


def listing(kind: Kind, items: Sequence[Object], now: Instant, style: Style) -> Listing:
    """Objects of one kind, ready to be printed; cells that are not shown are not made."""
    every = (NAME, AGE) if _is_custom(kind) else columns_of(kind)
    own = [column for column in every if style.wide or not column.priority]
    before: Around = [("Namespace", lambda item: item.namespace)] if style.namespace and kind.namespaced else []
    after: Around = [("GPUs", lambda item: gpu_text(item, style.vendors))] if style.wide and kind == POD else []
    if style.labels:
        after = [*after, ("Labels", lambda item: labels_text(item.meta.labels))]

    def row(item: Object) -> Row:
        document, name = item.doc(), called(kind, item.name)
        cells = [
            name if style.prefix and column.format == "name" else cell_text(column.cell(document, now))
            for column in own
        ]
        around = [[cell(item) for _, cell in side] for side in (before, after)]
        return Row([*around[0], *cells, *around[1]], name, document)

    names = [*(name for name, _ in before), *(column.name for column in own), *(name for name, _ in after)]
    return Listing([*map(Column, names)], [row(item) for item in items])


def _is_custom(kind: Kind) -> bool:
    """Whether somebody else defined the kind: groups of Kubernetes have no dot, or end with k8s.io."""
    return kind.name not in KINDS and "." in kind.group and not kind.group.endswith(".k8s.io")


def cell_text(cell: object) -> str:
    """A cell as Go prints it."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def clean(document: dict[str, Any], *, managed_fields: bool = False) -> dict[str, Any]:
    """A document as kubectl shows it: keys in order, the owners of its fields left out."""
    whole = dict(document)
    if not managed_fields and "managedFields" in (whole.get("metadata") or {}):
        whole["metadata"] = {key: value for key, value in whole["metadata"].items() if key != "managedFields"}
    shown: dict[str, Any] = ordered(whole)
    return shown
