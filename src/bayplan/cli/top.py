"""`bayplan top`: what nodes and pods use now, as the metrics API (metrics.k8s.io) measured it, and the GPUs they hold.

GPUs have no measurement there: what is shown is how many a pod asked for, and how many of a node's are held.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.names import complete_nodes, complete_pods
from bayplan.cli.targets import Session, Target, on_cluster, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object

_MEBI = 1 << 20
_SORTS = click.Choice(["cpu", "memory"])

Usage = tuple[int, int]
"""Thousandths of a core and bytes."""


class _Top(click.Group):
    """kubectl knows `top pod` and `top po` as well."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        full = {"pod": "pods", "po": "pods", "node": "nodes", "no": "nodes"}
        return super().get_command(ctx, full.get(cmd_name, cmd_name))


@click.group(cls=_Top)
def top() -> None:
    """Show what pods and nodes use."""


@top.command("pods")
@click.argument("name", required=False, shell_complete=complete_pods)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="Only with these labels.")
@click.option("--containers", is_flag=True, help="Each container of its own.")
@click.option("--sort-by", type=_SORTS, help="The largest first.")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@on_cluster
def pods(target: Target, **flags: Any) -> None:
    """Show what pods use, and the GPUs they hold."""
    target.run(lambda session: _pods(session, **flags))


@top.command("nodes")
@click.argument("name", required=False, shell_complete=complete_nodes)
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="Only with these labels.")
@click.option("--sort-by", type=_SORTS, help="The largest first.")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@on_cluster
def nodes(target: Target, **flags: Any) -> None:
    """Show what nodes use of what they have, and how many of their GPUs are held."""
    target.run(lambda session: _nodes(session, **flags))


async def _pods(
    session: Session,
    name: str | None,
    everywhere: bool,
    labels: str,
    containers: bool,
    sort_by: str | None,
    no_headers: bool,
) -> None:
    from bayplan.cli.gpus import gpu_text
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import POD

    where = None if everywhere else session.namespace
    measured = await _measured(session, "PodMetrics", "pods", name, where, labels)
    holders, _ = await list_all(session, POD, where, labels=labels, fields=f"metadata.name={name}" if name else "")
    gpus = {pod.key: gpu_text(pod) for pod in holders}
    rows: list[tuple[Usage, list[str]]] = []
    for item in measured:
        parts = item.doc().get("containers") or []
        uses = [(each["name"], _usage(each["usage"])) for each in parts]
        head = [item.namespace] if everywhere else []
        for part, usage in uses if containers else [("", _sum([each for _, each in uses]))]:
            cells = [*head, item.name, *([part] if containers else []), *_used(usage), gpus.get(item.key, "<unknown>")]
            rows.append((usage, cells))
    names = [*(["NAMESPACE"] if everywhere else []), *(["POD", "NAME"] if containers else ["NAME"])]
    _print([*names, "CPU(cores)", "MEMORY(bytes)", "GPUS"], rows, sort_by, no_headers)


async def _nodes(session: Session, name: str | None, labels: str, sort_by: str | None, no_headers: bool) -> None:
    from bayplan.cli.gpus import gpus_of_node, gpus_of_pod, held_text
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import NODE, POD
    from bayplan.model.nodes import Node
    from bayplan.model.resources import amounts

    measured = await _measured(session, "NodeMetrics", "nodes", name, None, labels)
    fields = f"metadata.name={name}" if name else ""
    known = {node.name: node for node in (await list_all(session, NODE, None, labels=labels, fields=fields))[0]}
    held: dict[str, Counter[str]] = {name: Counter() for name in known}
    running = "status.phase!=Succeeded,status.phase!=Failed"
    for pod in (await list_all(session, POD, None, fields=running))[0]:
        held.get(pod.doc()["spec"].get("nodeName", ""), Counter()).update(gpus_of_pod(pod))
    rows: list[tuple[Usage, list[str]]] = []
    for item in measured:
        if item.name not in known:
            continue
        usage = _usage(item.doc()["usage"])
        whole = amounts(known[item.name].view(Node).status.allocatable)
        cpu, memory = _used(usage)
        shares = (_percent(usage[0], whole.get("cpu", 0)), _percent(usage[1], whole.get("memory", 0)))
        gpus = held_text(held[item.name], gpus_of_node(known[item.name]))
        rows.append((usage, [item.name, cpu, shares[0], memory, shares[1], gpus]))
    _print(["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", "GPUS"], rows, sort_by, no_headers)


async def _measured(
    session: Session, name: str, plural: str, only: str | None, where: str | None, labels: str
) -> Sequence[Object]:
    """What was measured, by name. Raises NotFound; PermanentError where nobody measures."""
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import Kind
    from bayplan.model.errors import NotFound

    kind = Kind("metrics.k8s.io", "v1beta1", name, plural, namespaced=plural == "pods")
    try:
        if only:
            return [await session.cluster.get(kind, only, where or "")]
        found, _ = await list_all(session, kind, where, labels=labels)
    except NotFound as error:
        raise _explained(error, kind) from error
    return sorted(found, key=lambda item: item.key)


def _explained(error: Exception, kind: Kind) -> Exception:
    from bayplan.model.errors import NotFound

    if kind.plural in str(error):  # a name, not the API
        return error
    return NotFound("Metrics API not available", hint="install metrics-server in the cluster")


def _usage(usage: dict[str, str]) -> Usage:
    from bayplan.model.resources import amounts

    found = amounts(usage)
    return found.get("cpu", 0), found.get("memory", 0)


def _sum(parts: list[Usage]) -> Usage:
    return sum(cpu for cpu, _ in parts), sum(memory for _, memory in parts)


def _used(usage: Usage) -> tuple[str, str]:
    return f"{usage[0]}m", f"{usage[1] // _MEBI}Mi"


def _percent(used: int, whole: int) -> str:
    return f"{used * 100 // whole}%" if whole else "<unknown>"


def _print(head: list[str], rows: list[tuple[Usage, list[str]]], sort_by: str | None, no_headers: bool) -> None:
    from bayplan.cli.printers import columns

    if not rows:
        tell("No resources found")
        return
    if sort_by:
        rows = sorted(rows, key=lambda row: -row[0][sort_by == "memory"])
    click.echo(columns([*([] if no_headers else [head]), *(cells for _, cells in rows)]), nl=False)
