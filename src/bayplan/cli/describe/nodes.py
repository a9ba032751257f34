"""A node: how it is, what it has, and who holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.cli.describe.page import Doc, Page, ago, conditions, events, head
from bayplan.cluster.tables.columns import at
from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, Amounts

_BYTES = ("memory", "ephemeral-storage", "hugepages-")


class Holder(msgspec.Struct, frozen=True):
    """A pod on a node and what it holds there."""

    namespace: str
    name: str
    created: str
    requests: Amounts
    limits: Amounts


def node_page(node: Doc, allocatable: Amounts, holders: Sequence[Holder], found: Sequence[Doc], page: Page) -> None:
    """The page of a node; `holders` are the pods on it that have not ended."""
    taints = [_taint(each) for each in at(node, "spec.taints") or ()]
    page.pairs(
        [*head(node, page.now), ("Taints", taints), ("Unschedulable", str(bool(at(node, "spec.unschedulable"))))]
    )
    conditions(page, node)
    page.heading("Addresses")
    page.pairs([(each["type"], each["address"]) for each in at(node, "status.addresses") or ()], 2)
    for name, key in (("Capacity", "capacity"), ("Allocatable", "allocatable")):
        page.heading(name)
        page.pairs([*sorted((at(node, f"status.{key}") or {}).items())], 2)
    page.heading("System Info")
    page.pairs([(key, value or None) for key, value in (at(node, "status.nodeInfo") or {}).items()], 2)
    _holders(page, allocatable, holders)
    _totals(page, allocatable, holders)
    events(page, found)


def _taint(taint: Doc) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _holders(page: Page, allocatable: Amounts, holders: Sequence[Holder]) -> None:
    extra = sorted(name for name in allocatable if "/" in name and not name.startswith("hugepages-"))
    rows = [
        [
            each.namespace,
            each.name,
            *(_share(each.requests, name, allocatable) for name in (CPU, "memory", *extra)),
            ago(each.created, page.now),
        ]
        for each in holders
    ]
    head_words = ["Namespace", "Name", "CPU Requests", "Memory Requests", *extra, "Age"]
    page.table(f"Non-terminated Pods ({len(holders)} in total)", head_words, rows)


def _totals(page: Page, allocatable: Amounts, holders: Sequence[Holder]) -> None:
    requests, limits = _sum([each.requests for each in holders]), _sum([each.limits for each in holders])
    rows = [
        [name, _share(requests, name, allocatable), _share(limits, name, allocatable)]
        for name in sorted(allocatable)
        if name != "pods"
    ]
    page.table("Allocated resources", ["Resource", "Requests", "Limits"], rows)


def _sum(parts: Sequence[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _share(held: Mapping[str, int], name: str, allocatable: Mapping[str, int]) -> str:
    """`500m (6%)`."""
    amount, whole = held.get(name, 0), allocatable.get(name, 0)
    return f"{amount_text(name, amount)} ({100 * amount // whole if whole else 0}%)"


def amount_text(name: str, amount: int) -> str:
    """An amount in base units as a quantity."""
    if name == CPU:
        return str(Quantity.of_milli(amount))
    return str(Quantity.whole(amount, Format.BINARY_SI if name.startswith(_BYTES) else Format.DECIMAL_SI))
