"""`bayplan simulate capacity`: what else fits on a cluster, and what would have to change for what does not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.targets import Target, on_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.whatif.cluster_changes import AddNode
    from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--twin", "twin_file", type=_FILE, metavar="FILE", help="Ask a twin, or a recording as it ended.")
@click.option("--scenario", metavar="FILE", help="Ask the cluster of a scenario (file or name), after its warm-up.")
@click.option("--pod", metavar="FILE", help="A Pod, or a workload whose pods are meant; - for standard input.")
@click.option("--replicas", type=click.IntRange(1, 10_000), metavar="N", help="With --pod: which nodes to add for N.")
@click.option(
    "--node-shape", "node_shapes", type=_FILE, multiple=True, metavar="FILE",
    help="With --replicas: a Node manifest that may be added, not the shapes that are there; repeatable.",
)  # fmt: skip
@click.option("--scheduler-config", type=_FILE, metavar="FILE", help="The KubeSchedulerConfiguration in force.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="So many sorts of pods.")
@output_option("json", "yaml")
@on_cluster
def capacity(target: Target, **flags: Any) -> None:
    """Say what else fits, how many more of a pod, and what is needed for more.

    \b
    bayplan simulate capacity --context prod                       by GPU model, and by the pods that are there
    bayplan simulate capacity --twin prod.twin --pod train.yaml    how many more of this pod
    bayplan simulate capacity --pod train.yaml --replicas 40       the fewest nodes to add for 40 of it

    Pods are placed one by one on a copy, as the scheduler would, until one is refused; nobody is evicted, and pending
    pods take no place. Every number was run again: by the readable filters, and a pod of yours on a living copy.
    """
    if flags["pod"] is None and (flags["replicas"] or flags["node_shapes"]):
        raise click.UsageError("--replicas and --node-shape are about a pod: add --pod FILE")
    if flags["node_shapes"] and flags["replicas"] is None:
        raise click.UsageError("--node-shape is for nodes to add: add --replicas N")
    if flags["twin_file"] and flags["scenario"]:
        raise click.UsageError("--twin and --scenario both say what is asked: expected one of them")
    from bayplan.cli.simulate.capacity_page import overview_document, overview_page, pod_document, pod_page
    from bayplan.cli.twin import say_what_lacks
    from bayplan.simulate.twin.questions import ask_for, overview

    snapshot = _snapshot(target, flags["twin_file"], flags["scenario"])
    say_what_lacks(snapshot)
    output = flags["output"]
    profile = _profile(flags["scheduler_config"])
    if flags["pod"] is None:
        found = overview(snapshot, profile, top=flags["top"])
        text = _document(overview_document(found, snapshot), output) if output else overview_page(found, snapshot)
    else:
        body, namespace = _pod(flags["pod"], target)
        shapes = _shapes(flags["node_shapes"])
        answer = asyncio.run(
            ask_for(snapshot, profile, body, namespace, replicas=flags["replicas"], node_shapes=shapes)
        )
        text = _document(pod_document(answer, snapshot), output) if output else pod_page(answer, snapshot)
    click.echo(text, nl=False)


def _document(whole: Doc, output: str) -> str:
    from bayplan.cli.printers import document

    return document(whole, output)


def _snapshot(target: Target, twin_file: Path | None, scenario: str | None) -> Snapshot:
    if twin_file is not None:
        from bayplan.simulate.twin.snapshot import read_snapshot

        return read_snapshot(twin_file)
    if scenario is not None:
        return asyncio.run(_of_scenario(scenario))
    from bayplan.cli.twin import read_twin

    return target.run(read_twin)


async def _of_scenario(file: str) -> Snapshot:
    from bayplan.cli.simulate.run import scenario_of
    from bayplan.model.clock import Instant, VirtualClock
    from bayplan.simulate.stage import Stage
    from bayplan.simulate.twin.snapshot import read_cluster

    _, scenario = scenario_of(file)
    start = VirtualClock().now()
    stage = Stage(scenario, seed=scenario.seed, start=start)
    await stage.rehearse(Instant(start + scenario.warm_up.micros))
    await stage.cluster.advance(0)  # what has come by now is ready and has its place; nothing else comes
    return await read_cluster(stage.cluster, file, stage.now)


def _profile(path: Path | None) -> Profile:
    if path is None:
        from bayplan.scheduling.profiles import default_profile

        return default_profile()
    from bayplan.cluster.embedded.scheduler_file import load_configuration

    return load_configuration(path).profiles[0]


def _pod(source: str, target: Target) -> tuple[Doc, str]:
    """The pod of a file, or that of a workload's template, and its namespace. Raises ManifestError."""
    from bayplan.cli.manifests import ManifestError, read_manifests

    found = read_manifests([source])
    body = found[0].document
    template = (body.get("spec") or {}).get("template")
    if body["kind"] != "Pod" and isinstance(template, dict):
        name = {"name": found[0].name or "pod"}
        body = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**(template.get("metadata") or {}), **name}}
    if len(found) != 1 or body["kind"] != "Pod" or not isinstance(body.get("spec"), dict):
        kinds = ", ".join(str(each.document["kind"]) for each in found)
        raise ManifestError(f"{source}: expected one Pod, or a workload with a pod template; got {kinds}")
    namespace = found[0].namespace or target.namespace or "default"
    return {**body, "metadata": {**(body.get("metadata") or {}), "namespace": namespace}}, namespace


def _shapes(paths: Sequence[Path]) -> list[AddNode]:
    from bayplan.model.nodes import Node
    from bayplan.model.objects import from_builtins
    from bayplan.scheduling.whatif.shapes import shape_of
    from bayplan.simulate.bare import nodes_of, read_shape

    made = []
    for path in paths:
        shape = read_shape(path)
        shape["metadata"] = {**(shape.get("metadata") or {}), "name": path.stem}
        node = nodes_of(1, shape)[0]
        node["metadata"]["name"] = path.stem
        made.append(shape_of(from_builtins(node, Node)))
    return sorted(made, key=lambda each: each.size)
