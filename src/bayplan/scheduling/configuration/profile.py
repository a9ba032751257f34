"""One profile read: which plugins take part where, with what arguments and weights.

A plugin here prepares and decides in one: its `filter` is upstream's preFilter and filter, its `score` is preScore and
score. So, to do as upstream does: what filters or scores must be prepared, or every pod would fail; what is prepared
and does not score has no effect; what is prepared and does not filter may still turn down all nodes, or all but some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.faults import Faults, shown, unknown
from bayplan.model.meta import Wire
from bayplan.scheduling.configuration.document import PluginEntry, Plugins, PluginSet, ProfileDocument
from bayplan.scheduling.configuration.plugin_arguments import read_arguments
from bayplan.scheduling.configuration.points import ALL, GATED, REMOVED, expanded, merged, overflow, weights
from bayplan.scheduling.framework import NodeFilter, Plugin, Profile, Refusal
from bayplan.scheduling.profiles import KNOWN, PLUGINS, assemble

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

MULTI_POINT = "multiPoint"
_DEFAULTS = tuple(PluginEntry(known.name, known.weight) for known in KNOWN)
_NAMES = tuple(PLUGINS)
_UNPREPARED = {
    "filter": ("preFilter", {"NodeAffinity", "NodeVolumeLimits", "VolumeZone"}),
    "score": ("preScore", {"NodeAffinity", "NodeResourcesFit"}),
}
"""What is prepared where, and the plugins that upstream lets do without."""


class Plan(msgspec.Struct, frozen=True):
    """A profile that could be built."""

    scheduler_name: str
    enabled: dict[str, list[str]]
    weights: Mapping[str, int]
    arguments: Mapping[str, Wire]
    percentage_of_nodes_to_score: int

    def profile(self) -> Profile:
        """Build it. Only what was read without a fault can be built."""
        unfiltered = [name for name in self.enabled["preFilter"] if name not in self.enabled["filter"]]
        enabled = {**self.enabled, "filter": [*unfiltered, *self.enabled["filter"]]}
        profile = assemble(
            self.scheduler_name,
            {point: [(name, self.weights.get(name, 0)) for name in names] for point, names in enabled.items()},
            self.arguments,
            self.percentage_of_nodes_to_score,
        )
        filters = tuple(_preparing(plugin) if plugin.name in unfiltered else plugin for plugin in profile.filters)
        return msgspec.structs.replace(profile, filters=filters)


def read_profile(written: ProfileDocument, percentage: int, path: str, faults: Faults) -> Plan:
    """A profile as it is written; `percentage` of nodes is scored if it does not say."""
    sets = {point: _checked(given, point, f"{path}.plugins.{point}", faults) for point, given in _sets(written.plugins)}
    everywhere = merged(_DEFAULTS, sets.pop(MULTI_POINT))
    enabled = {
        point: expanded(given, [entry.name for entry in everywhere if point in PLUGINS[entry.name].points])
        for point, given in sets.items()
    }
    weigh = weights(sets["score"], [entry for entry in everywhere if "score" in PLUGINS[entry.name].points])
    _check_whole(enabled, f"{path}.plugins", faults)
    if overflow(weigh.values()):
        faults.add(f"{path}.plugins.score", "total score of Score plugins could overflow: weights are negative")
    own = written.percentage_of_nodes_to_score
    return Plan(
        written.scheduler_name or "",
        enabled,
        weigh,
        _arguments(written, f"{path}.pluginConfig", faults),
        percentage if own is None else own,
    )


def _sets(plugins: Plugins) -> Iterator[tuple[str, PluginSet]]:
    for field in msgspec.structs.fields(plugins):
        yield field.encode_name, getattr(plugins, field.name)


def _checked(given: PluginSet, point: str, path: str, faults: Faults) -> PluginSet:
    """The set without what cannot be."""
    for i, entry in enumerate(given.disabled):
        if entry.name not in (ALL, *PLUGINS, *REMOVED, *GATED):
            faults.add(f"{path}.disabled[{i}].name", unknown("plugin", entry.name, _NAMES))
    kept: dict[str, PluginEntry] = {}
    for i, entry in enumerate(given.enabled):
        wrong = _why_not(entry.name, point, kept)
        if wrong:
            faults.add(f"{path}.enabled[{i}].name", wrong)
        else:
            kept[entry.name] = entry
    return PluginSet(tuple(kept.values()), given.disabled)


def _why_not(name: str, point: str, enabled: Mapping[str, PluginEntry]) -> str:
    if name in REMOVED:
        return f"{name} was removed; NodeVolumeLimits does its work"
    if name in GATED:
        return f"{name} needs the feature gate {GATED[name]}, which is off"
    if name not in PLUGINS:
        return unknown("plugin", name, _NAMES)
    if name in enabled:
        return f"Duplicate value: {shown(name)}"
    points = PLUGINS[name].points
    if point != MULTI_POINT and point not in points:
        return f"{name} has no {point}; it has {', '.join(sorted(points))}"
    return ""


def _arguments(written: ProfileDocument, path: str, faults: Faults) -> dict[str, Wire]:
    """The arguments by plugin, of those that take part in decisions."""
    found: dict[str, Wire] = {}
    seen = set()
    for i, config in enumerate(written.plugin_config):
        if config.name not in PLUGINS:
            faults.add(f"{path}[{i}].name", unknown("plugin", config.name, _NAMES))
            continue
        if config.name in seen:
            faults.add(f"{path}[{i}].name", f"Duplicate value: {shown(config.name)}")
        seen.add(config.name)
        args = read_arguments(config.name, config.args, f"{path}[{i}].args", faults)
        if args is not None and PLUGINS[config.name].args is type(args):
            found[config.name] = args
    return found


def _check_whole(enabled: Mapping[str, Sequence[str]], path: str, faults: Faults) -> None:
    """What a profile cannot do without."""
    for point, words in (("queueSort", "one queue sort plugin is needed"), ("bind", "one bind plugin is needed")):
        if not enabled[point] and not faults.below(f"{path}.{point}"):
            faults.add(f"{path}.{point}", f"Required value: {words}, and none is enabled")
    for point, (preparation, exempt) in _UNPREPARED.items():
        lacking = [
            each
            for each in enabled[point]
            if preparation in PLUGINS[each].points and each not in enabled[preparation] and each not in exempt
        ]
        if lacking:
            words = f"{point} without {preparation}, which would fail for every pod: disable both, or none"
            faults.add(f"{path}.{preparation}", f"{', '.join(lacking)} would {words}")


class _Restriction(NodeFilter):
    def __init__(self, only: frozenset[str] | None) -> None:
        self.only = only

    def check(self, node: NodeState) -> Refusal | None:
        return None


def _preparing(plugin: Plugin) -> Plugin:
    """What is left of a plugin that is enabled at preFilter and not at filter."""

    class Preparing(Plugin):
        name = plugin.name

        def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | Refusal | None:
            found = plugin.filter(pod, state)
            return _Restriction(found.only) if isinstance(found, NodeFilter) else found

    return Preparing()
