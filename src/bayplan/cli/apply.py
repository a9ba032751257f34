"""`bayplan apply`: make the cluster agree with files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.dry_run import TOLD, dry_run_option
from bayplan.cli.targets import Target, on_cluster, tell

if TYPE_CHECKING:
    from bayplan.cli.manifests import Manifest
    from bayplan.cli.targets import Session
    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object

MANAGER = "bayplan"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    files: tuple[str, ...]
    recursive: bool
    server_side: bool
    force_conflicts: bool
    manager: str
    dry_run: str


class _Done(msgspec.Struct, frozen=True):
    """What happened to one object: a word, and its states before and after."""

    word: str
    before: dict[str, Any] | None
    after: dict[str, Any]


@click.command()
@click.option("-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="File, folder, or - .")
@click.option("-R", "--recursive", is_flag=True, help="Also the folders below.")
@click.option("--server-side", is_flag=True, help="Let the server merge, and refuse what others own.")
@click.option("--force-conflicts", is_flag=True, help="With --server-side: take over what others own.")
@click.option("--field-manager", "manager", default=MANAGER, show_default=True, help="Who owns what is written.")
@dry_run_option("Write nothing; show what would change. server: by the server's own rules.")
@on_cluster
def apply(target: Target, **flags: Any) -> int:
    """Create or change objects so that they are as the files say.

    What a file said last time and says no longer is removed; what others set stays. kubectl and bayplan may be used in
    turns on the same objects.

    \b
    bayplan apply -f web.yaml
    bayplan apply -f manifests/ -R --dry-run=server    what would change, as a diff
    kubectl kustomize overlay | bayplan apply -f -
    """
    from bayplan.cli.manifests import read_manifests

    wish = Wish(**flags)
    if wish.force_conflicts and not wish.server_side:
        raise click.UsageError("--force-conflicts goes with --server-side")
    if wish.server_side and wish.dry_run == "client":
        raise click.UsageError("--server-side is the server's work: use --dry-run=server")
    manifests = read_manifests(wish.files, recursive=wish.recursive)
    return target.run(lambda session: _apply_all(session, target, manifests, wish))


async def _apply_all(session: Session, target: Target, manifests: list[Manifest], wish: Wish) -> int:
    """One after another; a refusal does not keep the others back."""
    from bayplan.cli.printers import coloured
    from bayplan.cli.resources import called
    from bayplan.model.errors import ApiError, PermanentError

    failed = 0
    for manifest in manifests:
        from bayplan.cli.manifests import home_of, kind_of

        try:
            kind = await kind_of(session, manifest)
            done = await _apply(session, manifest, kind, home_of(manifest, kind, session, target), wish)
        except (ApiError, PermanentError) as error:
            failed += 1
            tell(f"error: {manifest.origin}: {error.message.removeprefix(f'{manifest.origin}: ')}")
            if error.hint:
                tell(f"hint: {error.hint}")
            continue
        name = called(kind, done.after["metadata"]["name"])
        click.echo(f"{name} {done.word}{TOLD[wish.dry_run]}")
        if wish.dry_run != "none":
            from bayplan.cli.diff import difference

            click.echo(difference(name, done.before, done.after, colour=coloured(sys.stdout)), nl=False)
    return 1 if failed else 0


async def _apply(session: Session, manifest: Manifest, kind: Kind, namespace: str, wish: Wish) -> _Done:
    from bayplan.cli.manifests import ManifestError
    from bayplan.model.errors import NotFound

    if not manifest.name:
        raise ManifestError(f"{manifest.origin}: metadata.name not set", hint="apply needs it to find the object again")
    try:
        before = await session.cluster.get(kind, manifest.name, namespace)
    except NotFound:
        before = None
    document = manifest.document
    if namespace:
        document = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    if wish.server_side:
        after = await _server_side(session, kind, document, namespace, wish)
        return _Done("serverside-applied", None if before is None else before.doc(), after.doc())
    if before is None:
        return await _create(session, kind, document, namespace, wish)
    return await _change(session, before, document, wish)


async def _server_side(session: Session, kind: Kind, document: dict[str, Any], namespace: str, wish: Wish) -> Object:
    from bayplan.cluster.port import PatchType

    return await session.cluster.patch(
        kind,
        document,
        document["metadata"]["name"],
        namespace,
        type=PatchType.APPLY,
        manager=wish.manager,
        force=wish.force_conflicts,
        dry_run=wish.dry_run == "server",
    )


async def _create(session: Session, kind: Kind, document: dict[str, Any], namespace: str, wish: Wish) -> _Done:
    from bayplan.cli.three_way import annotated

    body = annotated(document)
    if wish.dry_run == "client":
        return _Done("created", None, body)
    dry = wish.dry_run == "server"
    made = await session.cluster.create(kind, body, namespace, dry_run=dry, manager=wish.manager, strict=True)
    return _Done("created", None, made.doc())


async def _change(session: Session, before: Object, document: dict[str, Any], wish: Wish) -> _Done:
    from bayplan.cli.three_way import annotated, last_applied, three_way
    from bayplan.cluster.embedded.schema.table import TABLE
    from bayplan.cluster.port import PatchType

    known = before.doc()
    kind = before.kind
    type_name = TABLE.kinds.get(kind.name, "") if kind.api_version == document["apiVersion"] else ""
    patch = three_way(last_applied(known), annotated(document), type_name)
    if wish.dry_run == "client":
        after = _merged(known, patch, type_name)
        return _Done("unchanged" if after == known else "configured", known, after)
    changed = await session.cluster.patch(
        kind,
        patch,
        before.name,
        before.namespace,
        type=PatchType.STRATEGIC if type_name else PatchType.MERGE,
        manager=wish.manager,
        dry_run=wish.dry_run == "server",
    )
    result = changed.doc()
    same = _timeless(result) == _timeless(known)
    return _Done("unchanged" if same else "configured", known, result)


def _merged(known: dict[str, Any], patch: dict[str, Any], type_name: str) -> dict[str, Any]:
    from bayplan.cluster.embedded.patch.merge import merge_patch
    from bayplan.cluster.embedded.patch.strategic import strategic_merge

    return strategic_merge(known, patch, type_name) if type_name else merge_patch(known, patch)


def _timeless(document: dict[str, Any]) -> dict[str, Any]:
    """Without what the server writes when nothing of ours changed."""
    kept = {key: value for key, value in document.items() if key != "status"}
    hidden = ("resourceVersion", "managedFields", "generation")
    kept["metadata"] = {key: value for key, value in document["metadata"].items() if key not in hidden}
    return kept
