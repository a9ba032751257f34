"""What a kind does at each step of a write: a record of small functions, one record a kind.

The pipeline (`pipeline.py`) knows the order of the steps; a kind knows its rules. Documents are plain JSON values that
have been through `decode`: known fields only, right types, canonical quantities and times, empty fields left out.
Functions named `default`/`prepare` change the document in place; functions named `validate` add to `Errors`; none keeps
anything, none reads the time, none looks at other objects.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.kinds import Kind

Step = Callable[[Doc], None]
Change = Callable[[Doc, Doc], None]
Rule = Callable[[Doc, Errors], None]
ChangeRule = Callable[[Doc, Doc, Errors], None]
Warn = Callable[[Doc, Doc | None], list[str]]
NameRule = Callable[[str, bool], list[str]]
"""A name and whether it is a generateName prefix in; what is wrong with it out, in upstream's words."""


def nothing(*_: object) -> None:
    """A step or rule that a kind does not have."""


def no_warnings(_new: Doc, _old: Doc | None) -> list[str]:
    """A kind without warnings of its own."""
    return []


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one kind. Order of a create: default, (admission plugins), prepare, validate, warn, store."""

    kind: Kind
    name_rule: NameRule
    generation: bool = False
    """Whether metadata.generation counts the changes of everything but metadata and status."""
    default: Step = nothing
    """Defaults set while decoding; also applied to the result of every update and patch."""
    prepare: Step = nothing
    """Before validation of a create: status dropped or set to its start."""
    validate: Rule = nothing
    """Everything but metadata, which is validated by the pipeline with `name_rule`."""
    prepare_update: Change = nothing
    """(new, old), before validation of an update of the main resource: status taken from old, immutable parts kept."""
    validate_update: ChangeRule = nothing
    """(new, old): everything but the generic metadata rules; calls `validate` itself where upstream does."""
    prepare_status: Change = nothing
    """(new, old), for an update of /status: everything but status (and what upstream lets pass) taken from old."""
    validate_status: ChangeRule = nothing
    prepare_resize: Change = nothing
    """(new, old), for an update of a pod's /resize."""
    validate_resize: ChangeRule = nothing
    prepare_finalize: Change = nothing
    """(new, old), for an update of a namespace's /finalize."""
    validate_finalize: ChangeRule = nothing
    warn: Warn = no_warnings
    """Warnings for (new, old or None)."""
    create_on_update: bool = False
    """A PUT to a missing object creates it."""
    needs_version: bool = False
    """An update without resourceVersion is refused."""
