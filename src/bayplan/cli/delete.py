"""`bayplan delete`: begin the deletion of objects, and wait for their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.dry_run import TOLD, dry_run_option
from bayplan.cli.names import complete_resources
from bayplan.cli.targets import Target, on_cluster, tell
from bayplan.cli.waiting import span_seconds

if TYPE_CHECKING:
    from bayplan.cli.targets import Session
    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object
    from bayplan.cluster.port import Propagation
    from bayplan.model.errors import ApiError

_CASCADES: dict[str, Propagation] = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    words: tuple[str, ...]
    files: tuple[str, ...]
    recursive: bool
    labels: str
    fields: str
    all_of_them: bool
    everywhere: bool
    grace_period: int
    now: bool
    force: bool
    cascade: str
    wait: bool
    timeout: float | None
    ignore_not_found: bool
    dry_run: str

    @property
    def grace(self) -> int | None:
        """Seconds of grace; None leaves them to the object."""
        if self.now:
            return 1
        if self.force and self.grace_period < 0:
            return 0
        return None if self.grace_period < 0 else self.grace_period


@click.command()
@click.argument("words", nargs=-1, metavar="[TYPE NAME ... | TYPE/NAME ...]", shell_complete=complete_resources)
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="What a file, a folder or - names.")
@click.option("-R", "--recursive", is_flag=True, help="With -f: also the folders below.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="All with these labels.")
@click.option("--field-selector", "fields", default="", metavar="FIELDS", help="All with these fields.")
@click.option("--all", "all_of_them", is_flag=True, help="All of the type.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="With --all or -l: in all namespaces.")
@click.option("--grace-period", type=int, default=-1, metavar="SECONDS", help="Time to end in; -1 is the object's own.")
@click.option("--now", is_flag=True, help="Short for --grace-period=1.")
@click.option("--force", is_flag=True, help="At once, without waiting for the node's word.")
@click.option("--cascade", type=click.Choice([*_CASCADES]), default="background", show_default=True, help="Dependents.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return when they are gone.")
@click.option("--timeout", callback=span_seconds, metavar="SPAN", help="How long to wait: 30s.")
@click.option("--ignore-not-found", is_flag=True, help="A name that is not there is no error.")
@dry_run_option("Delete nothing.")
@on_cluster
def delete(target: Target, **flags: Any) -> int:
    """Delete objects by name, label or file.

    \b
    bayplan delete pod web-0 --now
    bayplan delete deploy,svc -l app=web
    bayplan delete -f manifests/
    """
    wish = Wish(**flags)
    if wish.now and wish.grace_period >= 0:
        raise click.UsageError("--now and --grace-period do not go together")
    if bool(wish.words) == bool(wish.files):
        raise click.UsageError("expected a type and names, or -f FILE")
    return target.run(lambda session: _delete(session, target, wish))


async def _delete(session: Session, target: Target, wish: Wish) -> int:
    chosen, missing = await (_from_files(session, target, wish) if wish.files else _from_words(session, wish))
    if wish.grace == 0:
        tell("Warning: immediate deletion does not wait for confirmation that what was running has ended")
    begun = []
    for item in chosen:
        error = await _begin(session, item, wish)
        if error is not None:
            missing.append(error)
            continue
        begun.append(item)
        click.echo(f'{item.kind.qualified.lower()} "{item.name}" {_told(item, wish)}')
    if not chosen and not missing:
        tell("No resources found")
    for each in missing:
        tell(f"error: {each.message}")
    if wish.wait and wish.dry_run == "none":
        await _await_end(session, begun, wish)
    return 1 if missing else 0


def _told(item: Object, wish: Wish) -> str:
    word = "force deleted" if wish.grace == 0 else "deleted"
    where = f" from {item.namespace} namespace" if item.namespace else ""
    return f"{word}{where}{TOLD[wish.dry_run]}"


async def _begin(session: Session, item: Object, wish: Wish) -> ApiError | None:
    """None when the deletion has begun, or the object is gone and that is no error."""
    from bayplan.model.errors import ApiError, NotFound

    if wish.dry_run == "client":
        return None
    try:
        await session.cluster.delete(
            item.kind,
            item.name,
            item.namespace,
            grace=wish.grace,
            uid=item.uid,
            propagation=_CASCADES[wish.cascade],
            dry_run=wish.dry_run == "server",
        )
    except NotFound as error:
        return None if wish.ignore_not_found or wish.labels or wish.all_of_them else error
    except ApiError as error:
        return error
    return None


async def _await_end(session: Session, items: list[Object], wish: Wish) -> None:
    from bayplan.cli.waiting import gone, patience

    async with patience(wish.timeout, f"{len(items)} objects are being deleted still"):
        for item in items:
            await gone(session, item)


async def _from_words(session: Session, wish: Wish) -> tuple[list[Object], list[ApiError]]:
    from bayplan.cli.resources import find, list_all

    chosen: list[Object] = []
    missing: list[ApiError] = []
    for found in await find(session, wish.words):
        selected = bool(wish.labels or wish.fields or wish.all_of_them)
        if selected == bool(found.names):
            raise click.UsageError("expected names, or one of -l, --field-selector, --all")
        if selected:
            where = None if wish.everywhere else found.home(session.namespace) or None
            items, _ = await list_all(session, found.kind, where, labels=wish.labels, fields=wish.fields)
            chosen += items
        for name in found.names:
            await _look_up(session, found.kind, name, found.home(session.namespace), wish, (chosen, missing))
    return chosen, missing


async def _from_files(session: Session, target: Target, wish: Wish) -> tuple[list[Object], list[ApiError]]:
    from bayplan.cli.manifests import home_of, kind_of, read_manifests

    chosen: list[Object] = []
    missing: list[ApiError] = []
    for manifest in read_manifests(wish.files, recursive=wish.recursive):
        kind = await kind_of(session, manifest)
        home = home_of(manifest, kind, session, target)
        await _look_up(session, kind, manifest.name, home, wish, (chosen, missing))
    return chosen, missing


async def _look_up(
    session: Session, kind: Kind, name: str, home: str, wish: Wish, into: tuple[list[Object], list[ApiError]]
) -> None:
    from bayplan.model.errors import NotFound

    chosen, missing = into
    try:
        chosen.append(await session.cluster.get(kind, name, home))
    except NotFound as error:
        if not wish.ignore_not_found:
            missing.append(error)
