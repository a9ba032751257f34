"""What the plugins share: silence unless a rule says otherwise, and the words of a refusal.

Source of truth for the words: apiserver pkg/admission/errors.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.model.errors import Cause, Details, Forbidden


class Rule:
    """A plugin that lets everything pass. A real one overrides `mutate`, `validate` or both."""

    name: str

    def mutate(self, request: Request, state: State) -> None:
        """Nothing to change."""

    def validate(self, request: Request, state: State) -> None:
        """Nothing to refuse."""


def name_of(request: Request) -> str:
    """The object's name; its prefix as long as the name is not generated."""
    meta = (request.doc or request.old or {}).get("metadata", {})
    return meta.get("name") or meta.get("generateName") or "Unknown"


def forbidden(request: Request, why: str, *causes: Cause) -> Forbidden:
    """`pods "x" is forbidden: ...`"""
    kind, name = request.kind, name_of(request)
    return Forbidden(
        f'{kind.resource} "{name}" is forbidden: {why}', details=Details(name, kind.group, kind.plural, causes=causes)
    )
