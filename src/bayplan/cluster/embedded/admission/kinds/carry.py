"""What an update takes over from the stored object: status for the main resource, everything else for /status."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.strategy import Change


def keep(*fields: str) -> Change:
    """A step that sets these fields of the new object to what the old one has."""

    def step(new: Doc, old: Doc) -> None:
        for field in fields:
            put(new, field, old.get(field))

    return step


keep_status = keep("status")
keep_spec = keep("spec")


def put(doc: Doc, field: str, value: Any) -> None:  # Any: a field's value is any JSON value
    """Set a field, or leave it out when there is nothing to set."""
    if value is None:
        doc.pop(field, None)
    else:
        doc[field] = value
