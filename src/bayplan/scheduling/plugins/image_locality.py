"""Nodes that hold a pod's images already are preferred, the more so the larger and the more widespread the images are.

    sum    = for each image on the node: its size * nodes that hold it / all nodes
    points = the sum, brought from the range of 23 MiB to 1000 MiB a container to 0 .. 100

Widespread images count more, so that a node is not swamped for being the only one that holds an image.
Source of truth: kube-scheduler 1.36 ImageLocality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import MAX_SCORE, NodeScore, Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_MEGABYTE = 1024 * 1024
_LEAST = 23 * _MEGABYTE
_MOST_PER_CONTAINER = 1000 * _MEGABYTE


class ImageLocality(Plugin):
    """Prefers nodes that need to fetch less."""

    name = "ImageLocality"

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        """Always."""
        spec = pod.wants.spec
        return _Held(image_names(spec), len(spec.init_containers) + len(spec.containers), len(state.nodes))


def image_names(spec: PodSpec) -> tuple[str, ...]:
    """The images that a pod needs, by the names under which nodes report them."""
    containers = [container.image for container in (*spec.init_containers, *spec.containers)]
    volumes = [volume.image.reference for volume in spec.volumes if volume.image]
    return tuple(map(_with_tag, (*containers, *volumes)))


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


class _Held(NodeScore):
    def __init__(self, images: Sequence[str], containers: int, nodes: int) -> None:
        self._images = images
        self._most = _MOST_PER_CONTAINER * containers
        self._nodes = nodes

    def score(self, node: NodeState) -> int:
        held = (node.images[name] for name in self._images if name in node.images)
        points = sum(int(image.size * (len(image.nodes) / self._nodes)) for image in held)
        clamped = max(_LEAST, min(points, self._most))
        return MAX_SCORE * (clamped - _LEAST) // (self._most - _LEAST)
