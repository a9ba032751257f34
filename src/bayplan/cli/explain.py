"""`bayplan explain`: why a pod is where it is, or why it is nowhere, and the smallest change that would place it.

The cluster is read, with list calls alone, and decided here; nothing is written.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import output_option
from bayplan.cli.names import complete_nodes, complete_pods
from bayplan.cli.targets import Session, Target, on_cluster, tell

if TYPE_CHECKING:
    from bayplan.cli.cluster_state import Seen
    from bayplan.cli.manifests import Manifest
    from bayplan.model.pods import Pod
    from bayplan.model.policies import Event
    from bayplan.scheduling.framework import Profile


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    name: str
    node: str
    nodes: bool
    top: int
    suggestions: int
    configuration: str | None
    source: str | None
    output: str | None


class _Explain(click.Group):
    """`explain pods NAME`, `explain po NAME` and `explain pod/NAME` as well."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word, slash, name = args[0].partition("/")
        return super().resolve_command(ctx, [word, name, *args[1:]] if slash else args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, {"pods": "pod", "po": "pod"}.get(cmd_name, cmd_name))


@click.group(cls=_Explain)
def explain() -> None:
    """Say why a pod is where it is, or why it is pending and what would place it."""


@explain.command("pod")
@click.argument("name", required=False, default="", shell_complete=complete_pods)
@click.option("--node", default="", metavar="NODE", shell_complete=complete_nodes, help="What one node says.")
@click.option("--nodes", is_flag=True, help="What every node that refuses says.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="So many nodes with scores.")
@click.option("--suggestions", type=click.IntRange(min=1), default=5, show_default=True, help="So many changes.")
@click.option(
    "--scheduler-config",
    "configuration",
    type=click.Path(),
    metavar="FILE",
    help="The KubeSchedulerConfiguration that the cluster's scheduler has.",
)
@click.option("-f", "--filename", "source", metavar="FILE", help="A pod that is not in the cluster yet.")
@output_option("json", "yaml")
@on_cluster
def pod(target: Target, **flags: Any) -> None:
    """Decide a pod anew on the cluster as it is, and tell every reason.

    For a pod that has a place: what each plugin gave each node, best first, and what broke the tie. For a pending one:
    kube-scheduler's sentence, who turned away how many nodes, and the smallest changes that would make it fit. On a
    virtual node that has a machine, also which CPUs and NUMA nodes the pod holds and why, or why it was refused.

    \b
    bayplan explain pod trainer-3 -n vision
    bayplan explain pod trainer-3 --nodes             every refusal of every node
    bayplan explain pod trainer-3 --node a100-a-1     of one node
    bayplan explain pod -f trainer.yaml               of a pod that is not there yet
    """
    wish = Wish(**flags)
    if "/" in wish.name:
        given = wish.name.rpartition("/")[2]
        raise click.UsageError(f'there is no need to say what "{wish.name}" is: `bayplan explain pod {given}`')
    if bool(wish.name) == bool(wish.source):
        raise click.UsageError("expected the name of a pod, or -f with a file")
    target.run(lambda session: _explain(session, target, wish))


async def _explain(session: Session, target: Target, wish: Wish) -> None:
    from shutil import get_terminal_size

    from bayplan.cli.cluster_state import read_state
    from bayplan.cli.describe.page import Page
    from bayplan.cli.explain_holdings import possession, possession_document, possession_page
    from bayplan.cli.explanation_page import Shown, explanation_document, explanation_page
    from bayplan.cli.printers import document
    from bayplan.model.errors import NotFound
    from bayplan.scheduling.explanation import Waiting, waiting
    from bayplan.scheduling.explanation import explain as explained

    seen = await read_state(session)
    if wish.node and seen.state.node(wish.node) is None:
        raise NotFound(f'nodes "{wish.node}" not found')
    wanted = await _from_file(session, target, wish.source) if wish.source else _known(session, seen, wish.name)
    if wanted.is_terminal:
        _tell_refused(session, wanted, wish)
        return
    _say_what_lacks(seen)
    found = explained(seen.state, _profile(wish, wanted, seen), wanted, suggestions=wish.suggestions)
    queue = Waiting() if wish.source or found.on else waiting(wanted, await _events(session, wanted))
    width = get_terminal_size().columns if sys.stdout.isatty() else 0
    shown = Shown(wish.top, wish.nodes, wish.node, width)
    host = seen.state.node(found.on)
    holds = possession(wanted, host.node if host else None, seen.pods.values()) if found.on else None
    if wish.output:
        whole = explanation_document(found, queue, shown)
        whole |= {"holdings": possession_document(holds)} if holds else {}
        click.echo(document(whole, wish.output), nl=False)
        return
    page = Page(session.now())
    explanation_page(found, queue, shown, page)
    if holds:
        possession_page(holds, page)
    click.echo(page.text(), nl=False)


def _tell_refused(session: Session, pod: Pod, wish: Wish) -> None:
    """A pod that the managers of its node refused: no place is sought for it any more."""
    from bayplan.cli.describe.page import Page
    from bayplan.cli.explain_holdings import refusal_document, refusal_page
    from bayplan.cli.printers import document

    if wish.output:
        click.echo(document(refusal_document(pod), wish.output), nl=False)
        return
    page = Page(session.now())
    refusal_page(pod, page)
    click.echo(page.text(), nl=False)


def _known(session: Session, seen: Seen, name: str) -> Pod:
    from bayplan.cli.explain_holdings import REFUSALS
    from bayplan.model.errors import NotFound, PermanentError

    found = seen.pods.get((session.namespace, name))
    if found is None:
        elsewhere = sorted(namespace for namespace, other in seen.pods if other == name)
        there = f"there is one in {', '.join(elsewhere)}: -n {elsewhere[0]}" if elsewhere else ""
        raise NotFound(f'pods "{name}" not found in namespace "{session.namespace}"', hint=there)
    if found.is_terminal and found.status.reason not in REFUSALS:
        raise PermanentError(
            f'pod "{name}" has run its course ({found.status.phase}): it takes no place any more',
            hint=f"bayplan describe pod {name} -n {session.namespace}",
        )
    return found


def _say_what_lacks(seen: Seen) -> None:
    if seen.lacking:
        tell(f"Warning: lacking the right to list {', '.join(seen.lacking)}")
        tell(f"Warning: not considered: {'; '.join(seen.unconsidered)}")


def _profile(wish: Wish, pod: Pod, seen: Seen) -> Profile:
    """The profile that the pod asks for. Raises PermanentError if there is none of that name."""
    from bayplan.scheduling.profiles import default_profile

    if wish.configuration is None:
        profile = default_profile(pod.spec.scheduler_name)
        if pod.spec.scheduler_name != "default-scheduler":
            name = pod.spec.scheduler_name
            tell(f'Warning: "{name}" is taken to decide as kube-scheduler does by default; see --scheduler-config')
    else:
        profile = _configured(wish.configuration, pod.spec.scheduler_name)
    if seen.volumes:
        return profile
    kept = tuple(plugin for plugin in profile.filters if not plugin.name.startswith(("Volume", "NodeVolume")))
    return msgspec.structs.replace(profile, filters=kept)


def _configured(path: str, name: str) -> Profile:
    from pathlib import Path

    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.model.errors import PermanentError

    profiles = load_configuration(Path(path)).by_name()
    if name not in profiles:
        raise PermanentError(
            f'{path} has no profile "{name}", which the pod asks for', hint=f"it has {', '.join(sorted(profiles))}"
        )
    return profiles[name]


async def _events(session: Session, pod: Pod) -> list[Event]:
    """What happened to the pod; nothing where that must not be read."""
    from bayplan.cli.resources import list_all
    from bayplan.cluster.kinds import EVENT
    from bayplan.model.errors import Forbidden
    from bayplan.model.policies import Event

    fields = f"involvedObject.kind=Pod,involvedObject.name={pod.metadata.name},involvedObject.uid={pod.metadata.uid}"
    try:
        found, _ = await list_all(session, EVENT, pod.metadata.namespace, fields=fields)
    except Forbidden:
        tell("Warning: lacking the right to list events: how often the pod was tried is not known.")
        return []
    return [each.view(Event) for each in found]


async def _from_file(session: Session, target: Target, source: str) -> Pod:
    from collections import Counter

    from bayplan.cli.manifests import ManifestError, home_of, read_manifests
    from bayplan.cluster.kinds import POD

    found = read_manifests([source])
    if len(found) != 1 or found[0].document["kind"] != "Pod":
        kinds = Counter(str(each.document["kind"]) for each in found)
        got = ", ".join(f"{number} of kind {kind}" for kind, number in kinds.items()) or "nothing"
        hint = "one Pod a file; of a workload, write its template as a Pod, or explain one of its pods by name"
        raise ManifestError(f"{source}: expected one Pod; got {got}", hint=hint)
    return await _as_stored(session, found[0], home_of(found[0], POD, session, target))


async def _as_stored(session: Session, manifest: Manifest, namespace: str) -> Pod:
    """The pod with the API server's defaults, given by an embedded one that knows the cluster's priorities."""
    from bayplan.cluster import kinds
    from bayplan.cluster.embedded.engine import EmbeddedCluster
    from bayplan.model.errors import AlreadyExists, Forbidden
    from bayplan.model.pods import Pod

    beside = EmbeddedCluster([])
    try:
        classes = (await session.cluster.list(kinds.PRIORITY_CLASS)).items
    except Forbidden:
        classes = ()
        tell("Warning: lacking the right to list priorityclasses: the pod's priority is not known.")
        (manifest.document.get("spec") or {}).pop("priorityClassName", None)
    wanted = [
        (kinds.NAMESPACE, {"metadata": {"name": namespace}}),
        *((each.kind, _new(each.doc())) for each in classes),
    ]
    for kind, body in wanted:
        try:
            await beside.create(kind, body)
        except AlreadyExists:
            continue  # every cluster has these
    stored = await beside.create(kinds.POD, manifest.document, namespace, dry_run=True)
    return stored.view(Pod)


def _new(document: dict[str, Any]) -> dict[str, Any]:
    meta = document["metadata"]
    return {**document, "metadata": {"name": meta["name"]}}
