"""Filters at work: the plugins of a profile prepared for one pod, then asked node by node until the first refusal.

Source of truth: kube-scheduler 1.36 runtime/framework.go (RunPreFilterPlugins, RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.framework import NodeFilter, Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class Filters:
    """What the filter plugins have to say about one pod. `restricting` are the plugins that name nodes."""

    __slots__ = ("_active", "only", "restricting", "whole")

    def __init__(
        self,
        active: Iterable[NodeFilter],
        whole: Refusal | None = None,
        only: frozenset[str] | None = None,
        restricting: tuple[str, ...] = (),
    ) -> None:
        self._active = tuple(active)
        self.whole = whole
        self.only = only
        self.restricting = restricting

    def check(self, node: NodeState) -> Refusal | None:
        """The first refusal, if there is one."""
        for each in self._active:
            refusal = each.check(node)
            if refusal is not None:
                return refusal
        return None

    def refusals(self, node: NodeState) -> tuple[Refusal, ...]:
        """All refusals, also those that a search would not get to."""
        return tuple(refusal for each in self._active if (refusal := each.check(node)) is not None)

    def copy(self) -> Filters:
        """One to suppose things on."""
        return Filters((each.copy() for each in self._active), self.whole, self.only, self.restricting)

    def add(self, pod: PodInfo, node: NodeState) -> None:
        """Suppose another pod was on a node; it is counted in there already."""
        for each in self._active:
            each.add(pod, node)

    def remove(self, pod: PodInfo, node: NodeState) -> None:
        """Suppose a pod was gone from a node; it is counted out there already."""
        for each in self._active:
            each.remove(pod, node)

    def check_among_nominated(self, node: NodeState, pod: PodInfo, state: ClusterState) -> Refusal | None:
        """The first refusal, with those who wait for this node and are not less important, and then without them."""
        crowded = self.with_nominated(node, pod, state)
        if crowded is not None:
            supposed, full = crowded
            refusal = supposed.check(full)
            if refusal is not None:
                return refusal
        return self.check(node)

    def with_nominated(self, node: NodeState, pod: PodInfo, state: ClusterState) -> tuple[Filters, NodeState] | None:
        """Suppose that those who wait for a node, and are not less important, were on it; None if there are none."""
        waiting = [
            each for each in state.nominated_on(node.name) if each.priority >= pod.priority and each.key != pod.key
        ]
        if not waiting:
            return None
        supposed, full = self.copy(), node.copy()
        for each in waiting:
            full.add(each)
            supposed.add(each, full)
        return supposed, full


def prepare(profile: Profile, pod: PodInfo, state: ClusterState) -> Filters:
    """Ask each plugin for its filter. A hopeless refusal of all nodes ends it there."""
    active: list[NodeFilter] = []
    whole: Refusal | None = None
    only: frozenset[str] | None = None
    restricting: list[str] = []
    for plugin in profile.filters:
        found = plugin.filter(pod, state)
        if found is None:
            continue
        if isinstance(found, Refusal):
            whole = found
            if found.hopeless:
                return Filters((), whole)
            continue
        active.append(found)
        if found.only is not None:
            restricting.append(plugin.name)
            only = found.only if only is None else only & found.only
            if not only:
                return Filters((), _contradiction(restricting), only, tuple(restricting))
    return Filters(active, whole, only, tuple(sorted(restricting)))


def _contradiction(plugins: list[str]) -> Refusal:
    if len(plugins) == 1:
        return Refusal("", (f"node(s) didn't satisfy plugin {plugins[0]}",), hopeless=True)
    named = " ".join(sorted(plugins))
    return Refusal("", (f"node(s) didn't satisfy plugin(s) [{named}] simultaneously",), hopeless=True)
