"""Kinds that bayplan does not know by name: asked of the server, as `kubectl api-resources` does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from bayplan.cluster.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.cluster.live.config import Access


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    singular_name: str = ""
    short_names: tuple[str, ...] = ()


class _Resources(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str
    resources: tuple[_Resource, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: _Version


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


async def discover(access: Access, word: str) -> Kind | None:
    """The kind that a word means to this server; None if it means nothing."""
    from bayplan.cluster.live.client import Client
    from bayplan.model.clock import SystemClock

    client = Client(access, clock=SystemClock())
    try:
        groups = msgspec.json.decode(await client.call("GET", "/apis"), type=_Groups).groups
        paths = ["/api/v1", *(f"/apis/{group.preferred_version.group_version}" for group in groups)]
        answers = await asyncio.gather(*(client.call("GET", path) for path in paths))
    finally:
        await client.close()
    return chosen(word, (msgspec.json.decode(answer, type=_Resources) for answer in answers))


def chosen(word: str, answers: Iterable[_Resources]) -> Kind | None:
    """The first resource that goes by the word, alone or with its group; a name counts before a short name.

    `ingress`, `ing` and `ingresses.networking.k8s.io` all mean the same.
    """
    by_short: Kind | None = None
    for answer in answers:
        group, _, version = answer.group_version.rpartition("/")
        for each in answer.resources:
            if "/" in each.name:
                continue
            kind = Kind(group, version, each.kind, each.name, each.namespaced, each.short_names)
            names = {each.name, each.singular_name or each.kind.lower(), each.kind.lower()}
            if word.lower() in names | {f"{name}.{group}" for name in names}:
                return kind
            if word.lower() in each.short_names:
                by_short = by_short or kind
    return by_short
