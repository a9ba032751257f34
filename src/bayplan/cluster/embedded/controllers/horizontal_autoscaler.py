"""HorizontalPodAutoscalers: replicas by need.

Every fifteen seconds each autoscaler is looked at, and at no other time: its own changes do not hasten the next look,
so the first comes fifteen seconds after it was made. Resource metrics are what virtual kubelets say their pods use.
There is no source of custom or external metrics, and autoscalers that ask for them are told so, in the words of a
cluster without adapters. Source of truth: pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Emit,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_limits import (
    MEMORY,
    PERIOD,
    Bounds,
    Memory,
    limit,
)
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_metrics import (
    MetricError,
    Proposal,
    Question,
    Tolerances,
    propose,
)
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_sources import FAILURES, named, no_source
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_target import Target, TargetError, target_of
from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Defaults
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.kinds import HORIZONTAL_POD_AUTOSCALER, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339, rfc3339
from bayplan.model.quantity import NANOS, parse
from bayplan.model.selector_text import parse_selector

NAME = "horizontal-pod-autoscaler"
_NO_SCALE = "the HPA controller was unable to get the target's current scale: {}"
Doc = dict[str, Any]


def _made(change: Change, _view: View) -> Iterable[Key]:
    return (change.new.key,) if change.old is None else ()


class HorizontalAutoscaler:
    """Scales what autoscalers point at."""

    name = NAME
    watches: Mapping[Kind, Concern] = {HORIZONTAL_POD_AUTOSCALER: _made}

    def __init__(self, behaviour: Defaults = USUAL) -> None:
        self._behaviour = behaviour

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(HORIZONTAL_POD_AUTOSCALER, *key)
        if item is None:
            return NOTHING
        first = parse_rfc3339(item.meta.creation_timestamp or "") + PERIOD
        if now < first:
            return Outcome(again=Instant(first))
        return Outcome(_Look(item, view, now, self._behaviour).writes(), Instant(now + PERIOD))


class _Look:
    """One look at an autoscaler."""

    def __init__(self, item: Object, view: View, now: Instant, behaviour: Defaults) -> None:
        self._item = item
        self._view = view
        self._now = now
        self._behaviour = behaviour
        self._spec: Doc = item.sections["spec"].plain()
        self._status: Doc = item.sections["status"].plain()
        self._writes: list[Write] = []

    def writes(self) -> list[Write]:
        try:
            target = target_of(self._spec["scaleTargetRef"], self._item.namespace, self._view)
        except TargetError as error:
            self._say("Warning", "FailedGetScale", str(error))
            self._condition("AbleToScale", "False", "FailedGetScale", _NO_SCALE.format(error))
            self._writes.append(SetStatus(self._item, self._status))
            return self._writes
        text = "the HPA controller was able to get the target's current scale"
        self._condition("AbleToScale", "True", "SucceededGetScale", text)
        self._decide(target)
        return self._writes

    def _say(self, type_: str, reason: str, message: str) -> None:
        self._writes.append(Emit(self._item, type_, reason, message, NAME))

    def _condition(self, kind: str, status: str, reason: str, message: str) -> None:
        conditions: list[Doc] = self._status.setdefault("conditions", [])
        found = next((one for one in conditions if one["type"] == kind), None)
        if found is None:
            found = {"type": kind, "status": ""}
            conditions.append(found)
        changed = {} if found["status"] == status else {"lastTransitionTime": rfc3339(self._now)}
        found |= {"status": status, **changed, "reason": reason, "message": message}

    def _tell(self, present: int, desired: int, metrics: list[Doc] | None, *, rescaled: bool = False) -> None:
        status: Doc = {"currentReplicas": present} if present else {}
        if rescaled:
            status |= {"lastScaleTime": rfc3339(self._now)}
        elif "lastScaleTime" in self._status:
            status |= {"lastScaleTime": self._status["lastScaleTime"]}
        told = {**status, "desiredReplicas": desired, "currentMetrics": metrics or None}
        self._writes.append(SetStatus(self._item, told | {"conditions": self._status["conditions"]}))

    # --- the decision

    def _decide(self, target: Target) -> None:
        present = target.replicas
        bounds = Bounds(self._spec.get("minReplicas", 1), self._spec["maxReplicas"])
        if present == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._condition("ScalingActive", "False", "ScalingDisabled", text)
            self._tell(0, 0, None)
        elif present > bounds.most:
            self._rescale(target, bounds.most, "Current number of replicas above Spec.MaxReplicas", None)
        elif present < bounds.least:
            self._rescale(target, bounds.least, "Current number of replicas below Spec.MinReplicas", None)
        else:
            self._by_metrics(target, bounds)

    def _by_metrics(self, target: Target, bounds: Bounds) -> None:
        present = target.replicas
        try:
            wanted, metric, metrics = self._computed(target)
        except _NoNumberError as error:
            self._tell(present, self._status.get("desiredReplicas", 0), error.metrics)
            self._say("Warning", "FailedComputeMetricsReplicas", str(error))
            return
        reason = "All metrics below target" if wanted < present else f"{metric} above target"
        memory = Memory.of(self._item.meta.annotations)
        found = limit(self._spec.get("behavior"), memory, present, wanted, bounds, self._now)
        self._condition("AbleToScale", "True", *found.able)
        self._condition("ScalingLimited", str(found.limited), *found.why)
        after = memory.recommended(wanted, present, self._now)
        if found.replicas != present:
            if "behavior" in self._spec:
                after = after.rescaled(present, found.replicas, self._now)
            self._rescale(target, found.replicas, reason if wanted != present else "", metrics)
        else:
            self._tell(present, present, metrics)
        if after != memory:
            self._writes.append(Patch(self._item, {"metadata": {"annotations": {MEMORY: after.text()}}}))

    def _rescale(self, target: Target, replicas: int, reason: str, metrics: list[Doc] | None) -> None:
        self._writes.append(target.scaled(replicas))
        text = f"the HPA controller was able to update the target scale to {replicas}"
        self._condition("AbleToScale", "True", "SucceededRescale", text)
        self._say("Normal", "SuccessfulRescale", f"New size: {replicas}; reason: {reason}")
        self._tell(target.replicas, replicas, metrics, rescaled=True)

    # --- the metrics

    def _computed(self, target: Target) -> tuple[int, str, list[Doc]]:
        """The largest proposal, the metric it comes from, and all present values. Raises _NoNumberError."""
        pods = self._pods(target)
        wanted, metric, metrics, failures = 0, "", list[Doc](), list[tuple[str, str, str]]()
        for spec in self._spec["metrics"]:
            try:
                proposal = self._proposed(spec, target, pods)
            except MetricError as error:
                reason, prefix = FAILURES[spec["type"]]
                self._say("Warning", reason, str(error))
                failures.append((reason, str(error), prefix(spec)))
                metrics.append({"type": ""})
                continue
            source = spec["type"][0].lower() + spec["type"][1:]
            metrics.append({"type": spec["type"], source: named(spec) | {"current": proposal.current}})
            if not wanted or proposal.replicas > wanted:
                wanted, metric = proposal.replicas, _metric_name(spec)
        total = len(self._spec["metrics"])
        if failures and (len(failures) == total or wanted < target.replicas):
            first, why, what = failures[0]
            self._condition("ScalingActive", "False", first, f"the HPA was unable to compute the replica count: {why}")
            words = f"invalid metrics ({len(failures)} invalid out of {total}), first error is: {what}: {why}"
            raise _NoNumberError(words, metrics)
        text = f"the HPA was able to successfully calculate a replica count from {metric}"
        self._condition("ScalingActive", "True", "ValidMetricFound", text)
        return wanted, metric, metrics

    def _pods(self, target: Target) -> list[Object]:
        """The pods that the target selects, and no other autoscaler's target. Raises _NoNumberError."""
        if not target.selector:
            self._say("Warning", "SelectorRequired", "selector is required")
            text = "the HPA target's scale is missing a selector"
            self._condition("ScalingActive", "False", "InvalidSelector", text)
            raise _NoNumberError("selector is required", [])
        selector = parse_selector(target.selector)
        pods = [pod for pod in self._view.objects(POD, self._item.namespace) if selector.matches(pod.meta.labels)]
        rivals = [other.name for other in self._view.objects(HORIZONTAL_POD_AUTOSCALER, self._item.namespace)
                  if self._selects(other, pods)]  # fmt: skip
        if len(rivals) > 1:
            listed = " ".join(f"{self._item.namespace}/{name}" for name in rivals)
            text = f"pods by selector {target.selector} are controlled by multiple HPAs: [{listed}]"
            self._say("Warning", "AmbiguousSelector", text)
            self._condition("ScalingActive", "False", "AmbiguousSelector", text)
            raise _NoNumberError(text, [])
        return pods

    def _selects(self, other: Object, pods: list[Object]) -> bool:
        try:
            target = target_of(other.sections["spec"].plain()["scaleTargetRef"], other.namespace, self._view)
        except TargetError:
            return False
        selector = parse_selector(target.selector) if target.selector else None
        return selector is not None and any(selector.matches(pod.meta.labels) for pod in pods)

    def _proposed(self, spec: Doc, target: Target, pods: list[Object]) -> Proposal:
        match spec["type"]:
            case "Resource":
                source, container = spec["resource"], ""
            case "ContainerResource":
                source, container = spec["containerResource"], spec["containerResource"]["container"]
            case _:
                raise MetricError(no_source(spec, self._item.namespace))
        asked = Question(source["name"], source["target"], target.replicas, self._tolerances(), container)
        return propose(asked, pods, self._now, self._behaviour)

    def _tolerances(self) -> Tolerances:
        behavior = self._spec.get("behavior") or {}
        usual = Tolerances()
        down, up = (behavior.get(name, {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
        return Tolerances(
            usual.down if down is None else parse(down).nanos / NANOS,
            usual.up if up is None else parse(up).nanos / NANOS,
        )


class _NoNumberError(ValueError):
    """No number of replicas comes of the metrics; `metrics` are the present values as far as they go."""

    def __init__(self, text: str, metrics: list[Doc]) -> None:
        super().__init__(text)
        self.metrics = metrics


def _metric_name(spec: Doc) -> str:
    if spec["type"] == "ContainerResource":
        source, word = spec["containerResource"], " container"
    else:
        source, word = spec["resource"], ""
    if "averageValue" in source["target"]:
        return f"{source['name']} resource"
    return f"{source['name']}{word} resource utilization (percentage of request)"
