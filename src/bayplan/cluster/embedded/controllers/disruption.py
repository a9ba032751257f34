"""How many pods of a budget may be disrupted now.

Healthy are the pods that are ready, not being deleted and not about to be: an eviction that was granted counts against
the budget for two minutes, then it is taken to have failed. How many there should be is what the pods' controllers are
scaled to, or simply how many there are where the budget wants a fixed number.

Source of truth: pkg/controller/disruption.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
    itself,
)
from bayplan.cluster.embedded.controllers.readiness import is_ready
from bayplan.cluster.embedded.controllers.shares import resolved
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, REPLICA_SET, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import Condition, LabelSelector, OwnerReference, condition
from bayplan.model.pods import Pod
from bayplan.model.policies import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.model.selectors import Selector, from_label_selector

COMPONENT = "controllermanager"
_DELETION_TIMEOUT = 120 * SECOND
_ALLOWED = "DisruptionAllowed"


class CannotCount(Exception):
    """The number of expected pods cannot be found out."""


@functools.lru_cache(maxsize=1024)
def _selector(spec: Section) -> Selector:
    view: PodDisruptionBudgetSpec = spec.view(PodDisruptionBudgetSpec)
    return from_label_selector(view.selector)


def selects(budget: Object, pod: Object) -> bool:
    """Whether a budget is about a pod."""
    return _selector(budget.sections["spec"]).matches(pod.meta.labels)


def _budgets(change: Change, view: View) -> Iterable[Key]:
    """A pod concerns the budgets that select it or did, when its health may have changed."""
    new, old = change.new, change.old
    if old is not None and change.type is ChangeType.MODIFIED and _is_same(new, old):
        return
    for budget in view.objects(POD_DISRUPTION_BUDGET, new.namespace):
        if selects(budget, new) or (old is not None and selects(budget, old)):
            yield budget.key


def _is_same(new: Object, old: Object) -> bool:
    mine, before = new.meta, old.meta
    return (
        mine.labels == before.labels
        and mine.deletion_timestamp == before.deletion_timestamp
        and mine.owner_references == before.owner_references
        and is_ready(new.view(Pod)) == is_ready(old.view(Pod))
    )


class DisruptionController:
    """Keeps the status of budgets."""

    name = "disruption-controller"
    watches: Mapping[Kind, Concern] = {POD_DISRUPTION_BUDGET: itself, POD: _budgets}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(POD_DISRUPTION_BUDGET, *key)
        if item is None:
            return NOTHING
        budget = item.view(PodDisruptionBudget)
        pods = [pod for pod in view.objects(POD, item.namespace) if selects(item, pod)]
        try:
            expected, desired = expectation(budget.spec, pods, view)
        except CannotCount as error:
            return Outcome(_failed(item, budget, str(error), now))
        disrupted, overdue = _disrupted(budget.status, pods, now)
        status = counted(budget, pods, expected, desired, disrupted, now)
        writes: list[Write] = [_not_deleted(pod, item) for pod in overdue]
        if status != budget.status:
            writes += _remarks(item, budget, pods)
            writes.append(SetStatus(item, _body(status)))
        return Outcome(writes, min((_expires(at) for at in disrupted.values()), default=None))


def expectation(spec: PodDisruptionBudgetSpec, pods: Sequence[Object], view: View) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy. Raises CannotCount."""
    if spec.max_unavailable is not None:
        expected = _scale(pods, view)
        return expected, max(expected - resolved(spec.max_unavailable, expected, up=True), 0)
    if isinstance(spec.min_available, str):
        expected = _scale(pods, view)
        return expected, resolved(spec.min_available, expected, up=True)
    return len(pods), spec.min_available or 0


def _scale(pods: Sequence[Object], view: View) -> int:
    """What the controllers of these pods are scaled to, all together. Pods without controller do not count."""
    scales: dict[str, int] = {}
    known: set[str] = set()
    for pod in pods:
        owner = pod.meta.controller
        if owner is None or owner.uid in known:
            continue
        known.add(owner.uid)
        top = _top(owner, pod, view)
        scales[top.uid] = top.sections["spec"].plain().get("replicas", 1)
    return sum(scales.values())


def _top(owner: OwnerReference, pod: Object, view: View) -> Object:
    """The controller that is scaled: a ReplicaSet's Deployment, else the pod's own controller."""
    found = _lookup(owner, pod, view)
    if found.kind is REPLICA_SET and found.meta.controller is not None:
        above = found.meta.controller
        if above.kind == DEPLOYMENT.name:
            return _lookup(above, pod, view)
    return found


def _lookup(owner: OwnerReference, pod: Object, view: View) -> Object:
    kind = view.registry.find(owner.api_version, owner.kind)
    if kind is None:
        group, _, version = owner.api_version.rpartition("/")
        raise CannotCount(f'no matches for kind "{owner.kind}" in version "{group}/{version}"'.replace('"/', '"'))
    if "scale" not in kind.subresources:
        raise CannotCount(f"{kind.resource} does not implement the scale subresource")
    found = view.get(kind, pod.namespace, owner.name)
    if found is None or found.uid != owner.uid:
        raise CannotCount(f'found no controllers for pod "{pod.name}"')
    return found


def counted(
    budget: PodDisruptionBudget,
    pods: Sequence[Object],
    expected: int,
    desired: int,
    disrupted: dict[str, str],
    now: Instant,
) -> PodDisruptionBudgetStatus:
    """The status of a budget over these pods."""
    healthy = sum(
        pod.meta.deletion_timestamp is None and pod.name not in disrupted and is_ready(pod.view(Pod)) for pod in pods
    )
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    told = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    generation = budget.metadata.generation
    return PodDisruptionBudgetStatus(
        observed_generation=generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=_told(budget.status.conditions, *told, "", generation, now),
    )


def _told(
    conditions: tuple[Condition, ...], status: str, reason: str, message: str, generation: int, now: Instant
) -> tuple[Condition, ...]:
    """The conditions with what is allowed now; the time is that of the last change of status."""
    present = condition(conditions, _ALLOWED)
    same = present is not None and present.status == status
    new = Condition(
        type=_ALLOWED,
        status=status,
        observed_generation=generation,
        last_transition_time=present.last_transition_time if present is not None and same else rfc3339(now),
        reason=reason,
        message=message,
    )
    if present is None:
        return (*conditions, new)
    return tuple(new if one is present else one for one in conditions)


def _disrupted(
    status: PodDisruptionBudgetStatus, pods: Sequence[Object], now: Instant
) -> tuple[dict[str, str], list[Object]]:
    """Granted evictions that may still come, and the pods whose eviction has not come in time."""
    granted = {
        pod.name: pod for pod in pods if pod.name in status.disrupted_pods and pod.meta.deletion_timestamp is None
    }
    overdue = [pod for name, pod in granted.items() if _expires(status.disrupted_pods[name]) <= now]
    late = {pod.name for pod in overdue}
    return {name: status.disrupted_pods[name] for name in sorted(granted) if name not in late}, overdue


def _expires(granted: str) -> Instant:
    return Instant(parse_rfc3339(granted) + _DELETION_TIMEOUT)


def _remarks(item: Object, budget: PodDisruptionBudget, pods: Sequence[Object]) -> list[Write]:
    if not pods:
        return [Emit(item, "Normal", "NoPods", "No matching pods found", COMPONENT)]
    by_scale = budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)
    if by_scale and any(pod.meta.controller is None for pod in pods):
        text = (
            f"Pods selected by this PodDisruptionBudget (selector: {_go_text(budget.spec.selector)}) were found "
            "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
            'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
            "integer value."
        )
        return [Emit(item, "Warning", "UnmanagedPods", text, COMPONENT)]
    return []


def _go_text(selector: LabelSelector | None) -> str:
    """A selector as Go prints it, which is how upstream's Event shows it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    wanted = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{wanted}}},}}"
    )


def _not_deleted(pod: Object, budget: Object) -> Emit:
    # upstream's text names the namespace twice and the budget not at all
    text = f"Pod was expected by PDB {budget.namespace}/{budget.namespace} to be deleted but it wasn't"
    return Emit(pod, "Warning", "NotDeleted", text, COMPONENT)


def _failed(item: Object, budget: PodDisruptionBudget, error: str, now: Instant) -> list[Write]:
    """When nothing is known, nothing may be disrupted."""
    was = budget.status
    conditions = _told(was.conditions, "False", "SyncFailed", error, was.observed_generation, now)
    status = msgspec.structs.replace(was, disruptions_allowed=0, conditions=conditions)
    if status == was:
        return []
    text = f"Failed to calculate the number of expected pods: {error}"
    return [
        Emit(item, "Warning", "CalculateExpectedPodCountFailed", text, COMPONENT),
        SetStatus(item, _body(status)),
    ]


_ALWAYS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _body(status: PodDisruptionBudgetStatus) -> dict[str, Any]:
    """A status as it is written: the counts are always there, and so is a condition's message."""
    body: dict[str, Any] = msgspec.to_builtins(status)
    for each in body["conditions"]:
        each.setdefault("message", "")
    head = {name: body.pop(name) for name in ("observedGeneration", "disruptedPods") if name in body}
    return head | dict.fromkeys(_ALWAYS, 0) | body
