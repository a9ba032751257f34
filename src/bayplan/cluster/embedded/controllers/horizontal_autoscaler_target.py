"""What an autoscaler points at, seen through its scale: how many there should be, and which pods they are."""

from __future__ import annotations

from typing import Any, NamedTuple

from bayplan.cluster.embedded.controllers.contract import Patch, View
from bayplan.cluster.embedded.scaling import scale_of, sized
from bayplan.cluster.kinds import ScalePaths
from bayplan.cluster.objects import Object

Doc = dict[str, Any]


class TargetError(ValueError):
    """The target cannot be scaled; the words are upstream's."""


class Target(NamedTuple):
    """A target and its scale."""

    item: Object
    replicas: int
    selector: str
    paths: ScalePaths | None

    def scaled(self, replicas: int) -> Patch:
        """The write that gives it another size."""
        return Patch(self.item, sized(replicas, self.paths))


def target_of(reference: Doc, namespace: str, view: View) -> Target:
    """The target of a reference. Raises TargetError. As upstream, the reference's version does not count."""
    name, group = reference["kind"], reference.get("apiVersion", "v1").rpartition("/")[0]
    kinds = [kind for kind in view.registry.kinds() if kind.name == name and kind.group == group]
    if not kinds:
        raise TargetError(f'no matches for kind "{name}" in group "{group}"')
    kind = kinds[0]
    if "scale" not in kind.subresources:
        raise TargetError("the server could not find the requested resource")
    item = view.get(kind, namespace, reference["name"])
    if item is None:
        raise TargetError(f'{kind.resource} "{reference["name"]}" not found')
    paths = view.registry.scale_paths(kind)
    scale = scale_of(item, paths)
    return Target(item, scale["spec"].get("replicas", 0), scale["status"].get("selector", ""), paths)
