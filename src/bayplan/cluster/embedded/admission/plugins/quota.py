"""A namespace's quotas: a write that would take more than is left is refused, one that fits is charged at once.

Two passes, as upstream makes them: first every quota that the object counts in must be able to judge it, then each is
charged; so a missing request is reported before an exhausted quota. Quotas speak in the order of their names.

Source of truth: apiserver pkg/admission/plugin/resourcequota. `usage` is what the quota controller recomputes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.embedded.admission.plugins.quota_usage import Evaluator, Usage, evaluator_of, usage
from bayplan.cluster.kinds import RESOURCE_QUOTA
from bayplan.model.quantity import parse

__all__ = ["ResourceQuota", "usage"]


class ResourceQuota(Rule):
    """Judges by `status.hard` and `status.used`: a quota without status does not count yet."""

    name = "ResourceQuota"

    def wants(self, request: Request) -> bool:
        if not request.namespace:
            return False
        evaluator = evaluator_of(request.kind)
        return evaluator is not None and evaluator.handles(request)

    def validate(self, request: Request, state: State) -> None:
        quotas = state.list(RESOURCE_QUOTA, request.namespace)
        evaluator = evaluator_of(request.kind)
        if not quotas or evaluator is None:
            return
        concerned = [quota for quota in quotas if _concerns(request, evaluator, quota)]
        if not concerned:
            return
        asked = evaluator.usage(request.doc, None)
        charged = [(quota, _charge(request, evaluator, quota, asked)) for quota in concerned]
        for quota, used in charged:
            if used and not request.dry_run:
                status = quota["status"]
                new = status | {"used": status.get("used", {}) | used}
                state.replace_status(RESOURCE_QUOTA, request.namespace, quota["metadata"]["name"], new)


def _concerns(request: Request, evaluator: Evaluator, quota: Doc) -> bool:
    status = quota.get("status", {})
    hard = status.get("hard", {})
    if not evaluator.matches(quota, hard, request.doc):
        return False
    name = quota["metadata"]["name"]
    tracked = sorted(filter(evaluator.tracks, hard))
    unsaid = evaluator.unsaid(tracked, request.doc)
    if unsaid:
        raise forbidden(request, f"failed quota: {name}: {unsaid}")
    if any(resource not in status.get("used", {}) for resource in tracked):
        raise forbidden(request, f"status unknown for quota: {name}, resources: {','.join(tracked)}")
    return True


def _charge(request: Request, evaluator: Evaluator, quota: Doc, asked: Usage) -> dict[str, str]:
    """The entries of `used` that change. An update pays the difference, unless it comes into the quota only now."""
    hard, used = quota["status"]["hard"], quota["status"].get("used", {})
    delta = {name: amount for name, amount in asked.items() if name in hard}
    if request.old is not None and evaluator.matches(quota, hard, request.old):
        before = evaluator.usage(request.old, None)
        delta = {name: amount - before[name] if name in before else amount for name, amount in delta.items()}
    delta = {name: amount for name, amount in delta.items() if amount.nanos > 0}
    new = {name: parse(used.get(name, "0")) + amount for name, amount in delta.items()}
    exceeded = sorted(name for name, amount in new.items() if amount > parse(hard[name]))
    if exceeded and request.subresource != "status":
        raise forbidden(
            request,
            f"exceeded quota: {quota['metadata']['name']}, requested: {_listed(delta, exceeded)}, "
            f"used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}",
        )
    return {name: str(amount) for name, amount in new.items()}


def _listed(amounts: Mapping[str, object], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
