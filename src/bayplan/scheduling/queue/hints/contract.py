"""What a hint is: which changes may help a pod that a plugin refused.

A hint looks at a change once and gives a judge, who is asked for each waiting pod: what concerns no pod is never asked.
A plugin without hints is taken to be helped by any change, and a judge that cannot tell says yes: a pod that is tried
in vain costs a little, one that is never tried is lost.

Source of truth: kube-scheduler 1.36 scheduler.go (buildQueueingHintMap) and backend/queue (isPodWorthRequeuing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bayplan.model.selectors import SelectorError
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.events import ASSIGNED_POD, NODE, POD, UNSCHEDULED_POD, Action, ClusterEvent

Judge = Callable[[PodInfo], bool]
Hint = Callable[[Any, Any], Judge]
"""From the object before and after the change; None where it was not there, or is no more."""


def ALWAYS(_pod: PodInfo) -> bool:  # noqa: N802 a constant that happens to be callable
    """It may help anyone."""
    return True


def NEVER(_pod: PodInfo) -> bool:  # noqa: N802 as above
    """It helps nobody."""
    return False


def always(_old: object, _new: object) -> Judge:
    """The hint of those who do not look closer."""
    return ALWAYS


class Interest(msgspec.Struct, frozen=True):
    """Changes that a plugin wants to hear of. `action` may be several."""

    resource: str
    action: Action
    hint: Hint = always

    def covers(self, event: ClusterEvent) -> bool:
        """Whether an event is one of them."""
        of_pods = self.resource == POD and event.resource in (ASSIGNED_POD, UNSCHEDULED_POD)
        return (of_pods or self.resource == event.resource) and event.action in self.action


class Hints:
    """The interests of a profile's plugins, by plugin."""

    def __init__(self, interests: Mapping[str, tuple[Interest, ...]]) -> None:
        self._interests = {plugin: _with_taints(wanted) for plugin, wanted in interests.items()}
        self._found: dict[ClusterEvent, dict[str, Hint]] = {}

    def cares(self, plugin: str, event: ClusterEvent) -> bool:
        """Whether an event may ever help a pod that the plugin refused."""
        return plugin in self._concerned(event) or plugin not in self._interests

    def judge(self, plugin: str, event: ClusterEvent, old: object, new: object) -> Judge:
        """Who says whether this one may."""
        hint = self._concerned(event).get(plugin)
        if hint is not None:
            return hint(old, new)
        return NEVER if plugin in self._interests else ALWAYS

    def _concerned(self, event: ClusterEvent) -> Mapping[str, Hint]:
        found = self._found.get(event)
        if found is None:
            found = self._found[event] = {
                plugin: interest.hint
                for plugin, wanted in self._interests.items()
                for interest in wanted
                if interest.covers(event)
            }
        return found


def ask(judge: Judge, pod: PodInfo) -> bool:
    """The judge's word; yes, where the pod's own selectors make no sense."""
    try:
        return judge(pod)
    except SelectorError:
        return True


def _with_taints(wanted: tuple[Interest, ...]) -> tuple[Interest, ...]:
    """As upstream: who waits for new nodes is also woken by any change of taints, unless it has a hint for those."""
    of_nodes = Action(0)
    for each in wanted:
        if each.resource == NODE:
            of_nodes |= each.action
    if Action.ADD in of_nodes and Action.NODE_TAINT not in of_nodes:
        return (*wanted, Interest(NODE, Action.NODE_TAINT))
    return wanted
