"""Objects from files: `-f FILE`, `-f FOLDER` with or without -R, `-f -` for standard input.

YAML is read as the API server reads it, so what is sent is what was meant; one file may hold many documents. A List
stands for its items.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cluster.embedded.schema.document import MalformedBodyError
from bayplan.cluster.embedded.schema.yaml_body import read_yaml
from bayplan.cluster.kinds import KINDS, Kind
from bayplan.model.errors import NotFound, PermanentError

if TYPE_CHECKING:
    from bayplan.cli.targets import Session, Target

_ENDINGS = (".yaml", ".yml", ".json")
_BETWEEN = re.compile(r"^---(?:[ \t].*)?$", re.M)


class ManifestError(PermanentError):
    """A file holds something that is no Kubernetes object."""

    code = "BP-F001"


class Manifest(msgspec.Struct, frozen=True):
    """An object to be, and where it was read."""

    origin: str
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name; '' where the server is to choose one."""
        return str((self.document.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace it names, if any."""
        return str((self.document.get("metadata") or {}).get("namespace") or "")


def read_manifests(sources: Sequence[str], *, recursive: bool | None = None) -> list[Manifest]:
    """All objects of the sources, in order; `recursive` None: there is no -R. Raises ManifestError, OSError."""
    found = [one for source in sources for path in _files(source, recursive) for one in _read(path)]
    if not found:
        raise ManifestError(
            f"no objects in {', '.join(sources)}",
            hint="expected YAML or JSON files"
            + ("; -R also looks into the folders below" if recursive is False else ""),
        )
    return found


def _files(source: str, recursive: bool | None) -> Iterator[str]:
    if source.startswith(("http://", "https://")):
        raise click.UsageError(f'a file, a folder or - for standard input is expected; got "{source}"')
    folder = Path(source)
    if source == "-" or not folder.is_dir():
        yield source
        return
    below = folder.rglob("*") if recursive else folder.glob("*")
    yield from sorted(str(path) for path in below if path.suffix in _ENDINGS and path.is_file())


def _read(source: str) -> Iterator[Manifest]:
    raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    origin = "standard input" if source == "-" else source
    text = raw.decode("utf-8-sig", errors="replace")
    start = 0
    for end, after in (*((match.start(), match.end()) for match in _BETWEEN.finditer(text)), (len(text), len(text))):
        part, line = text[start:end], text.count("\n", 0, start)
        start = after
        yield from _objects(f"{origin}:{line + (2 if line else 1)}", _parsed(origin, part, line))  # after its "---"


def _parsed(origin: str, part: str, line: int) -> Any:
    try:
        value, repeated = read_yaml(part.encode())
    except MalformedBodyError as fault:
        text = re.sub(r"line (\d+)", lambda match: f"line {int(match[1]) + line}", str(fault))
        raise ManifestError(f"{origin}: {text}", hint="mend the file; nothing was done") from fault
    if repeated:
        raise ManifestError(f"{origin}: {repeated[0]}", hint="a key may stand once; nothing was done")
    return value


def _objects(origin: str, value: Any) -> Iterator[Manifest]:
    if value is None:
        return
    if not isinstance(value, dict):
        raise ManifestError(f"{origin}: expected an object with apiVersion and kind; got {type(value).__name__}")
    if str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(origin, item)
        return
    missing = [key for key in ("apiVersion", "kind") if not isinstance(value.get(key), str) or not value[key]]
    if missing:
        raise ManifestError(f"{origin}: {' and '.join(missing)} not set", hint="every object names its kind")
    yield Manifest(origin, value)


async def kind_of(session: Session, manifest: Manifest) -> Kind:
    """The kind that a manifest names. Raises NotFound."""
    word, api = manifest.document["kind"], manifest.document["apiVersion"]
    known = KINDS.get(word)
    if known is not None and known.api_version == api:
        return known
    from bayplan.cli.discovery import discover

    group, _, version = api.rpartition("/")
    kind = await discover(session.cluster.access, f"{word}.{group}" if group else word)
    if kind is None or kind.group != group:
        raise NotFound(
            f'{manifest.origin}: the server has no kind "{word}" in "{api}"',
            hint="check apiVersion and kind; a custom kind needs its definition first",
        )
    return msgspec.structs.replace(kind, version=version)


def home_of(manifest: Manifest, kind: Kind, session: Session, target: Target) -> str:
    """The namespace an object goes to. Raises ManifestError where -n says otherwise."""
    if not kind.namespaced:
        return ""
    named = manifest.namespace
    if named and target.names_namespace and named != session.namespace:
        raise ManifestError(
            f'{manifest.origin}: the object names the namespace "{named}", -n "{session.namespace}"',
            hint=f"leave out -n, or use -n {named}",
        )
    return named or session.namespace
