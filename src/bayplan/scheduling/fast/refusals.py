"""Why no node will do, for a pod that no other pods stand in the way of: asked of one node of each kind.

Nodes are of a kind if the plugins that look at the node object alone say the same of them, and if they lack the same
resources. The readable filters then say the same of them, too, in whatever order the profile has them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.decision import GroupedRefusals
from bayplan.scheduling.fast.columns import CAPACITY, FULL, USED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.scheduling.fast.columns import Columns, Flags, Ints
    from bayplan.scheduling.fast.shapes import Shape
    from bayplan.scheduling.filtering import Filters
    from bayplan.scheduling.state import NodeState


def refusals(filters: Filters, shape: Shape, columns: Columns) -> GroupedRefusals:
    """The refusal of each node, by name. There must not be one that is feasible."""
    kinds: Ints = shape.statics.codes.copy()
    for difference in _differences(shape, columns):
        kinds <<= 1
        kinds |= difference
    ported = [] if shape.asked.plain else [at for at, node in enumerate(columns.nodes) if node.ports]
    for number, at in enumerate({*columns.odd, *ported}, 1):
        kinds[at] = -number  # what they are told holds for nobody else
    _, heads, members = np.unique(kinds, return_index=True, return_inverse=True)
    answers = [answer for at in heads.tolist() if (answer := filters.check(columns.nodes[at])) is not None]
    assert len(answers) == len(heads), "a node that is feasible is not refused"
    return GroupedRefusals(columns.index, members.tolist(), answers)


def _differences(shape: Shape, columns: Columns) -> Iterator[Flags]:
    """What tells nodes apart in the eyes of NodeResourcesFit and GpuShare: what they lack now, and never had."""
    columns.sync()
    numbers, asked = columns.numbers, shape.asked
    capacities = numbers[CAPACITY]
    used = numbers[USED].copy()
    full = used[0] >= FULL * capacities[0]
    used[0] -= FULL * capacities[0] * full
    yield full
    for amount, taken, capacity in zip((asked.cpu, asked.memory), used, capacities, strict=True):
        yield capacity - taken < amount
        yield capacity < amount
    if shape.gpus is not None:
        yield from shape.gpus.differences()
    for name, amount in asked.others:
        yield numbers[columns.row(name)] < amount
        group = columns.group(("allocatable", name), partial(_allocatable, name))
        yield np.array([_allocatable(name, node) < amount for node in group.heads])[group.codes]


def _allocatable(name: str, node: NodeState) -> int:
    return node.allocatable.get(name, 0)
