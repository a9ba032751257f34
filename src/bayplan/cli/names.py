"""Completion that asks the cluster: kinds, names, namespaces, contexts.

A shell waits for it, so it takes a second at most and says nothing when there is nothing to say: whatever goes wrong,
there are simply no suggestions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from bayplan.cli.targets import Target

_PATIENCE = 1.0
_MOST = 500
"""Nobody chooses among more."""


def complete_contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig."""
    from bayplan.cluster.live.config import read_kubeconfig
    from bayplan.model.errors import BayplanError

    try:
        known = read_kubeconfig(ctx.params.get("kubeconfig")).contexts
    except BayplanError:
        return []
    return [name for name in sorted(known) if name.startswith(incomplete)]


def complete_namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The namespaces of the cluster."""
    return _names(ctx, "namespaces", incomplete)


def complete_nodes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The nodes of the cluster."""
    return _names(ctx, "nodes", incomplete)


def complete_pods(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The pods of the namespace."""
    return _names(ctx, "pods", incomplete)


def complete_resources(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """First a kind, or `kind/name`; after a kind, its names."""
    given = ctx.params.get(parameter.name or "") or ()
    if "/" in incomplete:
        word, _, start = incomplete.partition("/")
        return [f"{word}/{name}" for name in _names(ctx, word, start)]
    if given and "/" not in given[0]:
        return [name for name in _names(ctx, given[0], incomplete) if name not in given[1:]]
    return _kinds(incomplete)


def _kinds(incomplete: str) -> list[str]:
    from bayplan.cluster.kinds import KINDS

    before, comma, start = incomplete.rpartition(",")
    return sorted(f"{before}{comma}{kind.plural}" for kind in KINDS.values() if kind.plural.startswith(start))


def _names(ctx: click.Context, word: str, incomplete: str) -> list[str]:
    from bayplan.cli.targets import Target
    from bayplan.model.errors import BayplanError

    target = Target(*(ctx.params.get(key) for key in ("kubeconfig", "context", "namespace")))
    target.quiet = True
    try:
        found = _ask(target, word)
    except (BayplanError, TimeoutError, OSError):
        return []
    return [name for name in found if name.startswith(incomplete)]


def _ask(target: Target, word: str) -> list[str]:
    import asyncio

    from bayplan.cli.targets import Session
    from bayplan.cluster.kinds import kind_named

    kind = kind_named(word)

    async def ask(session: Session) -> list[str]:
        async with asyncio.timeout(_PATIENCE):
            page = await session.cluster.list(kind, session.namespace if kind.namespaced else None, limit=_MOST)
        return [item.name for item in page.items]

    return target.run(ask)
