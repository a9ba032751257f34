"""`bayplan rollout`: follow a rollout, look at its history, go back, restart, pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.names import complete_resources
from bayplan.cli.targets import Session, Target, on_cluster
from bayplan.cli.waiting import span_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.cli.rollout_state import Revision
    from bayplan.cluster.objects import Object

_RESTARTED = "kubectl.kubernetes.io/restartedAt"

_words = click.argument(
    "words", nargs=-1, required=True, metavar="TYPE NAME | TYPE/NAME", shell_complete=complete_resources
)


@click.group()
def rollout() -> None:
    """Follow, undo, restart, pause and resume the rollouts of deployments, daemon sets and stateful sets.

    \b
    bayplan rollout status deploy/web --timeout=2m
    bayplan rollout undo deploy/web
    """


@rollout.command()
@_words
@click.option("-w/-W", "--watch/--no-watch", "watch", default=True, help="Wait for the end.")
@click.option("--timeout", callback=span_seconds, metavar="SPAN", help="How long to wait: 2m.")
@on_cluster
def status(target: Target, words: tuple[str, ...], watch: bool, timeout: float | None) -> None:
    """Say how far a rollout is, and wait for its end. Exit code 1 when it failed or the time is over."""
    target.run(lambda session: _status(session, words, watch, timeout))


async def _status(session: Session, words: tuple[str, ...], watch: bool, timeout: float | None) -> None:  # noqa: ASYNC109 - a flag's value, kept by `patience`
    from bayplan.cli.rollout_state import RolloutError, progress
    from bayplan.cli.waiting import patience
    from bayplan.cli.watching import changes

    for item in await _workloads(session, words):
        now = progress(item.doc())
        click.echo(now.words)
        if now.done or not watch:
            continue
        async with patience(timeout, now.words):
            since, fields = item.meta.resource_version, f"metadata.name={item.name}"
            async for change, seen in changes(session, item.kind, item.namespace, since=since, fields=fields):
                if change == "DELETED":
                    raise RolloutError(f"{item.kind.name} {item.name} has been deleted")
                before, now = now, progress(seen.doc())
                if now != before:
                    click.echo(now.words)
                if now.done:
                    break


@rollout.command()
@_words
@click.option("--revision", type=click.IntRange(0), default=0, metavar="N", help="The pod template of one revision.")
@on_cluster
def history(target: Target, words: tuple[str, ...], revision: int) -> None:
    """Show the revisions that a workload went through."""
    target.run(lambda session: _history(session, words, revision))


async def _history(session: Session, words: tuple[str, ...], number: int) -> None:
    from bayplan.cli.printers import columns, document
    from bayplan.cli.resources import called
    from bayplan.cli.rollout_state import chosen
    from bayplan.cli.rows import clean

    for item in await _workloads(session, words):
        found = await _revisions(session, item)
        if number:
            click.echo(f"{called(item.kind, item.name)} with revision #{number}")
            click.echo(document(clean(chosen(found, number).template), "yaml"), nl=False)
            continue
        click.echo(called(item.kind, item.name))
        rows = [["REVISION", "CHANGE-CAUSE"], *([str(each.number), each.cause or "<none>"] for each in found)]
        click.echo(columns(rows) if found else "No rollout history found.\n")


@rollout.command()
@_words
@click.option("--to-revision", type=click.IntRange(0), default=0, metavar="N", help="Which one; 0 is the one before.")
@on_cluster
def undo(target: Target, words: tuple[str, ...], to_revision: int) -> None:
    """Go back to an earlier revision."""
    target.run(lambda session: _undo(session, words, to_revision))


async def _undo(session: Session, words: tuple[str, ...], number: int) -> None:
    from bayplan.cli.resources import called
    from bayplan.cli.rollout_state import RolloutError, chosen
    from bayplan.cluster.port import PatchType

    for item in await _workloads(session, words):
        workload = item.doc()
        if workload["spec"].get("paused"):
            hint = f"bayplan rollout resume {called(item.kind, item.name)}"
            raise RolloutError("a paused deployment cannot be rolled back", hint=hint)
        revision = chosen(await _revisions(session, item), number)
        if _same(revision.template, workload["spec"]["template"]):
            skipped = f"skipped rollback (current template already matches revision {revision.number})"
            click.echo(f"{called(item.kind, item.name)} {skipped}")
            continue
        operations = [{"op": "replace", "path": "/spec/template", "value": revision.template}]
        await session.cluster.patch(item.kind, operations, item.name, item.namespace, type=PatchType.JSON)
        click.echo(f"{called(item.kind, item.name)} rolled back")


def _same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    from bayplan.cli.rows import clean

    return bool(_bare(clean(left)) == _bare(clean(right)))


def _bare(value: Any) -> Any:
    """Without what is empty: a revision may spell out what the workload leaves out."""
    if isinstance(value, dict):
        bare = {key: _bare(each) for key, each in value.items()}
        return {key: each for key, each in bare.items() if each not in (None, {}, [])}
    return [_bare(each) for each in value] if isinstance(value, list) else value


@rollout.command()
@_words
@on_cluster
def restart(target: Target, words: tuple[str, ...]) -> None:
    """Replace all pods, one after another as a rollout does."""
    target.run(lambda session: _patched(session, words, "restarted", _restart))


@rollout.command()
@_words
@on_cluster
def pause(target: Target, words: tuple[str, ...]) -> None:
    """Stop a deployment's rollout where it is."""
    target.run(lambda session: _patched(session, words, "paused", _pausing(True)))


@rollout.command()
@_words
@on_cluster
def resume(target: Target, words: tuple[str, ...]) -> None:
    """Go on with a paused rollout."""
    target.run(lambda session: _patched(session, words, "resumed", _pausing(False)))


async def _patched(
    session: Session, words: tuple[str, ...], word: str, change: Callable[[Session, Object], dict[str, Any]]
) -> None:
    from bayplan.cli.resources import called

    for item in await _workloads(session, words):
        await session.cluster.patch(item.kind, change(session, item), item.name, item.namespace)
        click.echo(f"{called(item.kind, item.name)} {word}")


def _restart(session: Session, item: Object) -> dict[str, Any]:
    from bayplan.cli.rollout_state import RolloutError
    from bayplan.model.clock import rfc3339

    if item.doc()["spec"].get("paused"):
        raise RolloutError(
            f'deployments.apps "{item.name}" can\'t restart paused deployment', hint="bayplan rollout resume first"
        )
    return {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: rfc3339(session.now())}}}}}


def _pausing(wanted: bool) -> Callable[[Session, Object], dict[str, Any]]:
    def change(_: Session, item: Object) -> dict[str, Any]:
        from bayplan.cli.rollout_state import RolloutError

        if item.kind.name != "Deployment":
            raise RolloutError(f"{item.kind.plural} cannot be paused", hint="only deployments can")
        if bool(item.doc()["spec"].get("paused")) == wanted:
            raise RolloutError(f'deployments.apps "{item.name}" is {"already" if wanted else "not"} paused')
        return {"spec": {"paused": wanted}}

    return change


async def _workloads(session: Session, words: tuple[str, ...]) -> list[Object]:
    from bayplan.cli.resources import find, objects_of

    return [item for found in await find(session, words) for item in await objects_of(session, found)]


async def _revisions(session: Session, item: Object) -> list[Revision]:
    from bayplan.cli.resources import list_all
    from bayplan.cli.rollout_state import revisions
    from bayplan.cluster.kinds import CONTROLLER_REVISION, REPLICA_SET

    kind = REPLICA_SET if item.kind.name == "Deployment" else CONTROLLER_REVISION
    made, _ = await list_all(session, kind, item.namespace)
    return revisions(item.doc(), [each.doc() for each in made])
