"""Whole lists, a page at a time."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster import paging
from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import CONFIG_MAP, Kind
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Page

NAMES = [f"m{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("page", "sizes"),
    [
        pytest.param(3, [3, 3, 1], id="the last page is short"),
        pytest.param(7, [7], id="one page holds them all"),
        pytest.param(100, [7], id="one page would hold more"),
    ],
)
async def test_every_object_comes_once_and_in_order(
    page: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PAGE", page)
    cluster, asked = embedded_cluster(), list[int]()
    for name in NAMES:
        await cluster.create(CONFIG_MAP, {"metadata": {"name": name, "labels": {"own": "yes"}}}, "default")
    inner = cluster.list

    async def listed(kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        found = await inner(kind, namespace, **how)
        asked.append(len(found.items))
        return found

    monkeypatch.setattr(cluster, "list", listed)
    assert [each.name async for each in all_of(cluster, CONFIG_MAP, "default", labels="own=yes")] == NAMES
    assert asked == sizes


async def test_selectors_and_namespaces_hold() -> None:
    cluster = embedded_cluster()
    for namespace, own in (("default", "yes"), ("default", "no"), ("kube-system", "yes")):
        body = {"metadata": {"name": f"m-{own}", "labels": {"own": own}}}
        await cluster.create(CONFIG_MAP, body, namespace)

    async def found(namespace: str | None, labels: str) -> list[tuple[str, str]]:
        return [each.key async for each in all_of(cluster, CONFIG_MAP, namespace, labels=labels)]

    assert await found(None, "own=yes") == [("default", "m-yes"), ("kube-system", "m-yes")]
    assert await found("default", "own") == [("default", "m-no"), ("default", "m-yes")]
    assert [each async for each in all_of(cluster, CONFIG_MAP, labels="own=maybe")] == []
