"""Conditions, and statuses as they are written.

Every change of a condition goes through `with_condition`: the same status with the same reason is no change, the same
status keeps its transition time, and what changes moves to the end.

Source of truth: SetDeploymentCondition in pkg/controller/deployment/util.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.model.clock import Instant, rfc3339
from bayplan.model.meta import Condition, Wire, condition

Conditions = tuple[Condition, ...]


def without(conditions: Conditions, kind: str) -> Conditions:
    """The conditions of all other types."""
    return tuple(one for one in conditions if one.type != kind)


def with_condition(conditions: Conditions, new: Condition) -> Conditions:
    """The conditions with this one in its type's place."""
    present = condition(conditions, new.type)
    if present is not None and present.status == new.status:
        if present.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=present.last_transition_time)
    return (*without(conditions, new.type), new)


def deployment_condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    """A condition as Deployments have them: with the time of its last update beside that of its last change."""
    at = rfc3339(now)
    return Condition(
        type=kind, status=status, last_update_time=at, last_transition_time=at, reason=reason, message=message
    )


def status_body(status: Wire, *kept: str) -> dict[str, Any]:
    """A status as it is written: without zero fields, but for those that the API always shows."""
    body: dict[str, Any] = msgspec.to_builtins(status)
    return dict.fromkeys(kept, 0) | body
