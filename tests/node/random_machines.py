"""Machines as they may be: holes in the numbering, uneven cores, nodes without CPUs, CPUs that are switched off."""

from __future__ import annotations

from hypothesis import strategies as st

from bayplan.node.machine import Cpu, Device, Machine, NumaNode, Topology
from bayplan.node.sets import mask_of

_RESOURCES = st.sampled_from(("nvidia.com/gpu", "amd.com/gpu"))
_WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Any machine that Linux could present."""
    sockets = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    nodes_in = [draw(st.integers(1, 2)) for _ in sockets]
    bare = draw(st.integers(0, 2))
    many = sum(nodes_in) + bare
    node_ids = draw(st.lists(st.integers(0, 300), min_size=many, max_size=many, unique=True))
    free = draw(st.permutations(range(64)))
    caches = iter(draw(st.permutations(range(64))))
    cpus: list[Cpu] = []
    homes = iter(node_ids)
    for socket, many in zip(sockets, nodes_in, strict=True):
        shared = next(caches) if draw(st.booleans()) else None
        for _ in range(many):
            node = next(homes)
            for _ in range(draw(st.integers(1, 2))):
                cache = next(caches) if shared is None else shared
                for _ in range(draw(st.integers(1, 3))):
                    threads, free = free[: (size := draw(st.sampled_from((1, 2, 4))))], free[size:]
                    cpus += [Cpu(cpu, min(threads), socket, node, cache) for cpu in threads]
    return Machine(
        name=draw(_WORDS.map(lambda word: f"m{word}")),
        topology=Topology(tuple(sorted(cpus))),
        nodes=draw(_nodes(sorted(node_ids))),
        devices=tuple(
            Device(draw(_RESOURCES), f"0000:{bus:02x}:00.0", draw(_on(node_ids)))
            for bus in range(draw(st.integers(0, 3)))
        ),
        description=draw(_WORDS),
        offline=mask_of(free[: draw(st.integers(0, 3))]),
    )


def _on(node_ids: list[int]) -> st.SearchStrategy[int]:
    return st.sampled_from([0, *(1 << each for each in node_ids)])


@st.composite
def _nodes(draw: st.DrawFn, ids: list[int]) -> tuple[NumaNode, ...]:
    far = {(one, other): draw(st.integers(11, 254)) for one in ids for other in ids if one < other}
    return tuple(
        NumaNode(
            id=one,
            memory=draw(st.just(0) | st.integers(1024, 2**30)) * 1024,
            hugepages=draw(st.dictionaries(st.sampled_from((2048, 1048576)), st.integers(0, 99)).map(_ascending)),
            distances={other: 10 if one == other else far[min(one, other), max(one, other)] for other in ids},
        )
        for one in ids
    )


def _ascending(pages: dict[int, int]) -> dict[int, int]:
    return dict(sorted(pages.items()))
