"""File paths that must stay below the place they are relative to."""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Errors


def has_backsteps(value: str) -> bool:
    """Whether the path has a `..` element."""
    return ".." in value and ".." in value.split("/")


def validate_no_backsteps(value: str, path: str, errors: Errors) -> None:
    """A path without a `..` element."""
    if has_backsteps(value):
        errors.invalid(path, value, "must not contain '..'")


def validate_descending_path(value: str, path: str, errors: Errors) -> None:
    """A relative path that stays below where it starts."""
    if value.startswith("/"):
        errors.invalid(path, value, "must be a relative path")
    validate_no_backsteps(value, path, errors)
