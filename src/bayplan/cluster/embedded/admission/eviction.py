"""May this pod be evicted now? A disruption budget decides, and pays.

A pod that is pending, finished or on its way out disrupts nobody. An unready pod may go without paying while the budget
has all the healthy pods it wants, or where it says so. Any other one costs the budget a disruption; a budget that
cannot pay, or whose numbers are out of date, says 429: try again.

Source of truth: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.model.errors import Cause, Details, Forbidden, ServerError, TooManyRequests

_MOST_DISRUPTED = 2000
_BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class BudgetChange(msgspec.Struct, frozen=True):
    """The budget that pays for an eviction, and what its status becomes."""

    name: str
    status: Doc


def decide(pod: Doc, budgets: Sequence[Doc], *, now: str) -> BudgetChange | None:
    """The pod may go; None if no budget pays for it. Raises TooManyRequests, Forbidden or ServerError if it may not.

    `budgets` are those whose selector matches the pod, `now` is the present second as metadata writes it.
    """
    if _disrupts_nobody(pod) or not budgets:
        return None
    if len(budgets) > 1:
        raise ServerError(_TWO_BUDGETS)
    budget = budgets[0]
    if not _is_ready(pod) and _lets_unready_go(budget):
        return None
    return BudgetChange(budget["metadata"]["name"], _paid(budget, pod["metadata"]["name"], now))


def disruption_target(now: str) -> Doc:
    """The condition that an evicted pod gets before it is deleted."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def _disrupts_nobody(pod: Doc) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp") is not None


def _is_ready(pod: Doc) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _lets_unready_go(budget: Doc) -> bool:
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _paid(budget: Doc, pod: str, now: str) -> Doc:
    name, status = budget["metadata"]["name"], budget.get("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", retry=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise _broken(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods", {})) > _MOST_DISRUPTED:
        raise _broken(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many(_why_blocked(name, status))
    new: Doc = status | {
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": status.get("disruptedPods", {}) | {pod: now},
    }
    if allowed == 1:
        new["conditions"] = _exhausted(status, now)
    return new


def _why_blocked(name: str, status: Doc) -> str:
    condition = _condition(status)
    message, reason = condition.get("message", ""), condition.get("reason", "")
    says_no = condition.get("status") == "False" and message != ""
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    silent = f"The disruption budget {name} does not allow evicting pods currently"
    if says_no and reason == "SyncFailed":  # then the numbers are not to be trusted
        return f"{silent} because it failed sync: {message}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    return f"{silent} ({reason}): {message}" if says_no else silent


def _condition(status: Doc) -> Doc:
    return next((one for one in status.get("conditions", ()) if one.get("type") == "DisruptionAllowed"), {})


def _exhausted(status: Doc, now: str) -> list[Doc]:
    """The budget's conditions once its last disruption is spent."""
    old = _condition(status)
    new: Doc = {
        "type": "DisruptionAllowed",
        "status": "False",
        "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == "False" else now,
        "reason": "InsufficientPods",
        "message": "",
    }
    if status.get("observedGeneration"):
        new["observedGeneration"] = status["observedGeneration"]
    conditions = status.get("conditions", [])
    return [new if one is old else one for one in conditions] if old else [*conditions, new]


def _too_many(why: str, retry: int = 0) -> TooManyRequests:
    cause = Cause(reason="DisruptionBudget", message=why)
    return TooManyRequests(_BLOCKED, details=Details(causes=(cause,), retryAfterSeconds=retry))


def _broken(name: str, why: str) -> Forbidden:
    return Forbidden(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details=Details(name, "policy", "poddisruptionbudget"),
    )
