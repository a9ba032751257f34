"""Which resource a URL speaks of.

/api/v1/[namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
/apis/GROUP/VERSION/[namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

import msgspec

from bayplan.cluster.kinds import Kind


class Route(msgspec.Struct, frozen=True):
    """A resource: a collection (no name), one object of it, or something below that object."""

    kind: Kind
    namespace: str | None
    """None for a cluster-scoped kind, and for a namespaced one in all namespaces."""
    name: str = ""
    subresource: str = ""

    @property
    def home(self) -> str:
        """The namespace of one object: '' for cluster-scoped kinds."""
        return self.namespace or ""


class Routes:
    """The kinds that are served, by group, version and plural."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in kinds}

    def find(self, path: str) -> Route | None:
        """The resource of a path; None where there is none."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:1] == ["api"] and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        if rest[0] == "namespaces" and len(rest) >= 3 and (group, version, rest[2]) in self._kinds:
            kind = self._kinds[group, version, rest[2]]
            return self._route(kind, rest[1], rest[3:]) if kind.namespaced else None
        found = self._kinds.get((group, version, rest[0]))
        if found is None or (found.namespaced and len(rest) > 1):
            return None
        return self._route(found, None, rest[1:])

    def _route(self, kind: Kind, namespace: str | None, below: list[str]) -> Route | None:
        name, subresource = [*below, "", ""][:2]
        if len(below) > 2 or (below and not name):
            return None
        if subresource and subresource not in kind.subresources:
            return None
        return Route(kind, namespace, name, subresource)
