"""What a server calls a kind that nobody knew before: asked by apiVersion and name, remembered once it is known."""

from __future__ import annotations

import msgspec

from bayplan.cluster.kinds import KINDS, RESOURCE_CLAIM, Kind
from bayplan.cluster.live.client import ANSWER, Client
from bayplan.cluster.live.config import Access
from bayplan.cluster.salvage import UNREADABLE
from bayplan.model.clock import Clock
from bayplan.model.errors import NotFound, ServerError


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = True


class _Resources(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] | None = ()


class LiveKinds:
    """The kinds of an API server."""

    def __init__(self, access: Access, clock: Clock, *, answer_within: float = ANSWER) -> None:
        self._client = Client(access, clock=clock, answer_within=answer_within)
        self._found: dict[tuple[str, str], Kind] = {}

    async def find(self, api_version: str, name: str) -> Kind | None:
        """The kind; None: the server does not have it (any more, or yet). Raises as the port does.

        Of built-in kinds only those of dynamic resource allocation are asked for: not every server has them.
        """
        built_in = KINDS.get(name)
        if built_in is not None and built_in.api_version == api_version and built_in.group != RESOURCE_CLAIM.group:
            return built_in
        if (api_version, name) not in self._found:
            group, _, version = api_version.rpartition("/")
            try:
                answer = await self._client.call("GET", f"/apis/{api_version}" if group else f"/api/{version}")
            except NotFound:
                return None
            try:
                resources = msgspec.json.decode(answer, type=_Resources).resources or ()
            except UNREADABLE as error:
                raise ServerError(f"{api_version}: the list of its kinds cannot be read: {error}") from error
            for each in resources:
                if "/" not in each.name:
                    kind = Kind(group, version, each.kind, each.name, each.namespaced)
                    self._found[api_version, each.kind] = kind
        return self._found.get((api_version, name))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
