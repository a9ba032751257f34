"""Counts, integers as Go reads them, and the "so many or such a share" of rolling updates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import NOT_NEGATIVE
from bayplan.cluster.embedded.admission.syntax import percent

MAX_INT64 = 2**63 - 1
_INTEGER = re.compile("[+-]?[0-9]+").fullmatch


def not_negative(doc: Doc, path: str, errors: Errors, fields: Iterable[str]) -> None:
    """None of these fields of `doc` is below zero."""
    for field in fields:
        if (value := doc.get(field) or 0) < 0:
            errors.invalid(f"{path}.{field}", value, NOT_NEGATIVE)


def validate_replica_counts(status: Doc, errors: Errors, counted: Iterable[str], *, ready: str) -> None:
    """Parts do not exceed the whole: `counted` against replicas, then available against ready."""
    replicas = status.get("replicas", 0)
    for field in counted:
        if (count := status.get(field, 0)) > replicas:
            errors.invalid(f"status.{field}", count, "cannot be greater than status.replicas")
    if (available := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        errors.invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def validate_collisions(new: Doc, old: Doc, errors: Errors) -> None:
    """status.collisionCount only grows."""
    count = new["status"].get("collisionCount") or 0
    if count < (old["status"].get("collisionCount") or 0):
        errors.invalid("status.collisionCount", count, "cannot be decremented")


def atoi(text: str) -> int | None:
    """An integer as strconv.Atoi reads it, clamped where Go clamps; None if it is none at all."""
    if not _INTEGER(text):
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    size = MAX_INT64 if len(digits) > 19 else min(int(digits), MAX_INT64)
    return -size if text[0] == "-" else size


def share(value: int | str) -> int:
    """The number in "3" or "30%"; 0 for a text that has none."""
    if isinstance(value, int):
        return value
    return atoi(value.removesuffix("%") if not percent(value) else value) or 0


def validate_share(value: int | str, path: str, errors: Errors) -> None:
    """A count or a percentage."""
    if isinstance(value, str):
        for fault in percent(value):
            errors.invalid(path, value, fault)
    elif value < 0:
        errors.invalid(path, value, NOT_NEGATIVE)


def validate_at_most_all(value: int | str, path: str, errors: Errors) -> None:
    """A percentage, if it is one, of no more than 100."""
    if isinstance(value, str) and not percent(value) and share(value) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


def as_struct(doc: Mapping[str, object], field: str) -> dict[str, object]:
    """A value to be shown as upstream shows its struct: with `field` in it even if unset, hence as `{...}`."""
    return {**doc, field: doc.get(field)}
