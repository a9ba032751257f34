"""Whatever is sent, the answer is an object or a refusal; a refusal changes nothing, what is stored is stored clean."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from bayplan.cluster.embedded.schema.document import read_json
from bayplan.cluster.kinds import KINDS, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.errors import ApiError
from tests.cluster.schema.mutations import documents, spoil, write

STEPS = 150
PATHS = (
    "/spec",
    "/spec/x",
    "/metadata/labels",
    "/metadata",
    "/data/-",
    "/spec/containers/0",
    "/spec/template",
    "",
    "/",
    "/status",
)
VALUES: tuple[Any, ...] = (1, None, "x", {}, [], True, [None], {"a": None})
OPERATIONS = ("add", "remove", "replace", "test", "move", "copy", "zap")


@functools.cache
def recorded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, text in documents():
        found.setdefault(kind, []).append(text)
    return found


class Vandal:
    """Someone who sends recorded and stored documents back, somewhat damaged, in every way there is."""

    def __init__(self, cluster: Cluster, home: str, seed: int) -> None:
        self.cluster = cluster
        self.home = home
        self.chance = random.Random(seed)

    def body(self, document: dict[str, Any]) -> bytes:
        tree = read_json(json.dumps(document).encode())
        for _ in range(self.chance.randint(0, 3)):
            spoil(tree, self.chance)
        return write(tree, self.chance).encode()

    def part(self, item: Object) -> dict[str, Any]:
        """Some of a stored object, with or without its version."""
        document = item.doc()
        if self.chance.random() < 0.5:
            document["metadata"].pop("resourceVersion", None)
        if self.chance.random() < 0.5:
            return document
        kept = {key: value for key, value in document.items() if key != "metadata" and self.chance.random() < 0.5}
        return {"apiVersion": item.kind.api_version, "kind": item.kind.name, **kept, "metadata": {"name": item.name}}

    def call(self, kind: Kind, present: tuple[Object, ...]) -> Awaitable[object]:
        """The next thing to do."""
        chance, cluster = self.chance, self.cluster
        where = self.home if kind.namespaced else ""
        manager, dry_run = chance.choice(("", "me", "you")), chance.random() < 0.1
        if not present or chance.random() < 0.3:
            body = self.body(json.loads(chance.choice(recorded()[kind.name])))
            return cluster.create(kind, body, where, manager=manager, dry_run=dry_run, strict=chance.random() < 0.2)
        item = chance.choice(present)
        body = self.body(self.part(item))
        options: dict[str, Any] = {
            "subresource": chance.choice(("", "", "status")),
            "manager": manager,
            "dry_run": dry_run,
        }
        way = chance.randrange(6)
        if way == 0:
            return cluster.delete(kind, item.name, where, grace=chance.choice((None, 0, 5, -1)), dry_run=dry_run)
        if way == 1:
            return cluster.update(kind, body, item.name, where, **options)
        if way == 2:
            operation = {"op": chance.choice(OPERATIONS), "path": chance.choice(PATHS), "from": "/spec"}
            operations = [operation | {"value": chance.choice(VALUES)}]
            return cluster.patch(kind, operations, item.name, where, type=PatchType.JSON, **options)
        if way == 3:
            force = chance.random() < 0.5
            return cluster.patch(kind, body, item.name, where, type=PatchType.APPLY, force=force, **options)
        type_ = PatchType.MERGE if way == 4 else PatchType.STRATEGIC
        return cluster.patch(kind, body, item.name, where, type=type_, **options)


@pytest.mark.parametrize("seed", range(8))
async def test_no_body_breaks_the_cluster(cluster: Cluster, home: str, seed: int) -> None:
    vandal = Vandal(cluster, home, seed)
    for _ in range(STEPS):
        kind = KINDS[vandal.chance.choice(sorted(recorded()))]
        where = home if kind.namespaced else ""
        before = (await cluster.list(kind, where)).items
        try:
            await vandal.call(kind, before)
        except ApiError:
            after = (await cluster.list(kind, where)).items
            assert [item.raw() for item in after] == [item.raw() for item in before]
        else:
            for item in (await cluster.list(kind, where)).items:
                once = await cluster.update(
                    kind, item.raw(), item.name, where
                )  # defaults that were patched away return
                twice = await cluster.update(kind, once.raw(), item.name, where)
                assert twice.meta.resource_version == once.meta.resource_version
