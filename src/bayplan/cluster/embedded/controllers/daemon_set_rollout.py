"""What is to be done about a DaemonSet's pods: one a node first, then the new template in place of the old.

Pure: nodes, pods and the hash of the template in force come in, pods to make and to delete go out. Source of truth:
podsShouldBeOnNode in pkg/controller/daemon/daemon_controller.go, rollingUpdate in update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.cluster.embedded.controllers.daemon_set_nodes import Site
from bayplan.cluster.embedded.controllers.readiness import is_available, is_ready
from bayplan.cluster.embedded.controllers.revisions import REVISION_LABEL
from bayplan.cluster.embedded.controllers.shares import resolved
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.pods import Pod
from bayplan.model.workloads import DaemonSet

TEMPLATE_GENERATION = "pod-template-generation"
_GENERATION = "deprecated.daemonset.template.generation"
FAILED_PODS_LIVE = SECOND  # upstream's first back-off; it doubles in memory, we remember nothing

ByNode = Mapping[str, Sequence[Object]]


class Plan:
    """Pods to make, by node, and to delete; and those of them that have ended by themselves."""

    def __init__(self) -> None:
        self.create: list[str] = []
        self.delete: list[Object] = []
        self.ended: list[tuple[str, Object]] = []
        self.again: list[Instant] = []

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


class Template(msgspec.Struct, frozen=True):
    """The template in force: how its pods are told, and when they count."""

    hash: str
    generation: str
    min_ready: int

    @classmethod
    def of(cls, wanted: DaemonSet, revision_hash: str) -> Template:
        """The template of a DaemonSet whose newest revision has this hash."""
        return cls(revision_hash, wanted.metadata.annotations.get(_GENERATION, ""), wanted.spec.min_ready_seconds)

    @property
    def labels(self) -> dict[str, str]:
        """What its pods are labelled with."""
        generation = {TEMPLATE_GENERATION: self.generation} if self.generation else {}
        return {REVISION_LABEL: self.hash, **generation}

    def made(self, pod: Object) -> bool:
        """Whether a pod is of this template."""
        labels = pod.meta.labels
        is_same_generation = bool(self.generation) and labels.get(TEMPLATE_GENERATION) == self.generation
        return labels.get(REVISION_LABEL) == self.hash or is_same_generation

    def has(self, pod: Object, now: Instant) -> bool:
        """Whether a pod, new or old, is available."""
        return is_available(pod.view(Pod), self.min_ready, now)


def by_age(pods: Iterable[Object]) -> list[Object]:
    """Bound pods first, then the older ones."""
    return sorted(pods, key=lambda one: (not one.view(Pod).spec.node_name, one.meta.creation_timestamp or "", one.name))


def max_surge(wanted: DaemonSet, nodes: int) -> int:
    """How many nodes may have two pods."""
    strategy = wanted.spec.update_strategy
    return resolved(strategy.rolling_update.max_surge, nodes, up=True) if strategy.type == "RollingUpdate" else 0


def _max_unavailable(wanted: DaemonSet, nodes: int) -> int:
    return resolved(wanted.spec.update_strategy.rolling_update.max_unavailable, nodes, up=True) or 1


def placed(wanted: DaemonSet, sites: Mapping[str, Site], pods: ByNode, template: Template, now: Instant) -> Plan:
    """One pod on each node that is to have one, two where the rollout surges, none elsewhere."""
    plan = Plan()
    may_surge = max_surge(wanted, 1) > 0
    for node, site in sites.items():
        here = pods.get(node, ())
        if site.runs and not here:
            plan.create.append(node)
        elif not site.stays:
            plan.delete += [pod for pod in here if pod.meta.deletion_timestamp is None]
        elif here:
            running = _running(plan, node, here, now)
            if may_surge:
                plan.delete += _surplus(running, template, now)
                plan.create += [node] if site.runs and not running else []
            else:
                plan.delete += running[1:]
    for node, here in pods.items():
        if node not in sites:  # nobody else deletes what waits for a node that is gone
            plan.delete += [pod for pod in here if not pod.view(Pod).spec.node_name]
    return plan


def _running(plan: Plan, node: str, pods: Iterable[Object], now: Instant) -> list[Object]:
    """The pods that live on; those that have ended are to be deleted, though no sooner than a second after birth."""
    running = []
    for pod in pods:
        if pod.meta.deletion_timestamp is not None:
            continue
        phase = pod.view(Pod).status.phase
        due = parse_rfc3339(pod.meta.creation_timestamp or "1970-01-01T00:00:00Z") + FAILED_PODS_LIVE
        if phase == "Failed" and due > now:
            plan.again.append(Instant(due))
        elif phase in ("Failed", "Succeeded"):
            plan.ended.append((node, pod))
            plan.delete.append(pod)
        else:
            running.append(pod)
    return by_age(running)


def _surplus(running: Sequence[Object], template: Template, now: Instant) -> list[Object]:
    """An old and a new pod may stand side by side while the old is ready and the new is not yet available."""
    new = [pod for pod in running if template.made(pod)]
    old = [pod for pod in running if not template.made(pod)]
    extra = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0].view(Pod)) or template.has(new[0], now)):
        extra.append(old[0])
    return extra


class _Pair(msgspec.Struct, frozen=True):
    new: Object | None
    old: Object | None


def _pair(pods: Iterable[Object], template: Template) -> _Pair | None:
    """The new and the old pod of a node; None if there are more, which `placed` sees to."""
    alive = [pod for pod in pods if pod.meta.deletion_timestamp is None]
    new = [pod for pod in alive if template.made(pod)]
    old = [pod for pod in alive if not template.made(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return _Pair(new[0] if new else None, old[0] if old else None)


def rolled(wanted: DaemonSet, sites: Mapping[str, Site], pods: ByNode, template: Template, now: Instant) -> Plan:
    """The next old pods to go, or the next new ones to come beside them."""
    desired = sum(site.runs for site in sites.values())
    nodes = dict.fromkeys((*pods, *(node for node, site in sites.items() if site.runs)))
    pairs = {node: _pair(pods.get(node, ()), template) for node in sorted(nodes)}

    def has(pod: Object | None) -> bool:
        return pod is not None and template.has(pod, now)

    if surge := max_surge(wanted, desired):
        return _surged(pairs, sites, desired, surge, has)
    return _replaced(pairs, _max_unavailable(wanted, desired), has)


def _replaced(pairs: Mapping[str, _Pair | None], most: int, has: Callable[[Object | None], bool]) -> Plan:
    """Old pods that do not work go at once, others as long as no more than `most` nodes are without."""
    plan = Plan()
    candidates: list[Object] = []
    missing = 0
    for pair in pairs.values():
        if pair is None or pair.old is None or pair.new is not None:
            is_fine = pair is not None and pair.old is None and has(pair.new)
            missing += not is_fine
        elif not has(pair.old):
            plan.delete.append(pair.old)
            missing += 1
        else:
            candidates.append(pair.old)
    plan.delete += candidates[: max(most - missing, 0)]
    return plan


def _surged(
    pairs: Mapping[str, _Pair | None],
    sites: Mapping[str, Site],
    desired: int,
    most: int,
    has: Callable[[Object | None], bool],
) -> Plan:
    """New pods come beside at most `most` working old ones, and old ones go when the new work."""
    plan = Plan()
    candidates: list[str] = []
    unwanted: list[Object] = []
    surging = available = 0
    for node, pair in pairs.items():
        if pair is None:
            surging += 1
            continue
        available += has(pair.old or pair.new)
        if pair.old is None:
            continue
        if pair.new is not None:
            surging += not has(pair.new)
            plan.delete += [pair.old] if has(pair.new) else []
        elif node not in sites or not sites[node].runs:
            (unwanted if has(pair.old) else plan.delete).append(pair.old)
        else:
            (candidates if has(pair.old) else plan.create).append(node)
    plan.delete += unwanted[: max(available - desired, 0)]
    plan.create += candidates[: max(most - surging, 0)]
    return plan
