"""Which plugins run where: upstream's extension points, and how a file's plugin sets are laid over the defaults.

A set names what is enabled and disabled at one point; `multiPoint` speaks for all points that a plugin has. A point's
own set has the last word, a file's multiPoint goes before the default one, and enabled goes before disabled.

Source of truth: kube-scheduler 1.36 apis/config/v1/default_plugins.go (mergePluginSet) and runtime/framework.go
(expandMultiPointPlugins, getValidScoreWeights).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.scheduling.configuration.document import PluginEntry, PluginSet

ALL = "*"
REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins of former days. To disable them is harmless."""
GATED = {
    "GangScheduling": "GangScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
}
"""Plugins for feature gates that are off by default, and the gates."""


def merged(defaults: Sequence[PluginEntry], given: PluginSet) -> list[PluginEntry]:
    """What is enabled at multiPoint: the defaults that are left, overridden in place, then what the file adds."""
    disabled = {entry.name for entry in given.disabled}
    own = {entry.name: entry for entry in given.enabled}
    kept = [] if ALL in disabled else [entry.name for entry in defaults if entry.name not in disabled]
    by_default = {entry.name: entry for entry in defaults}
    return [own.get(name, by_default[name]) for name in kept] + [own[name] for name in own if name not in kept]


def expanded(given: PluginSet, multi_point: Iterable[str]) -> list[str]:
    """The plugins of one point in order; `multi_point` are those enabled for all points that have this one.

    First those that override a multiPoint plugin, then the multiPoint plugins, then the others that are named.
    """
    own = list(dict.fromkeys(entry.name for entry in given.enabled))
    disabled = {entry.name for entry in given.disabled}
    if ALL in disabled:
        return own
    offered = [name for name in multi_point if name not in disabled]
    overriding = [name for name in own if name in offered]
    return [*overriding, *(n for n in offered if n not in own), *(n for n in own if n not in overriding)]


def weights(score: PluginSet, multi_point: Iterable[PluginEntry]) -> Mapping[str, int]:
    """What plugins weigh: by the set of `score`, else by multiPoint. 0 is 1."""
    found: dict[str, int] = {}
    for entry in (*score.enabled, *multi_point):
        found.setdefault(entry.name, entry.weight or 1)
    return found


def overflow(found: Iterable[int]) -> bool:
    """Whether upstream would fear for its sums: a sum below 0, taken from the largest number, wraps around."""
    total = 0
    for weight in found:
        if total < 0:
            return True
        total += weight
    return False
