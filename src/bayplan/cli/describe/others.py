"""Any kind that has no page of its own: the head that all have, then its fields as they are, then events."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cli.describe.page import Doc, Page, conditions, events, head
from bayplan.cli.printers import document as as_text

_APART = ("apiVersion", "kind", "metadata")


def other_page(document: Doc, found: Sequence[Doc], page: Page) -> None:
    """The page of any object. A secret's values are not shown, only how long they are."""
    page.pairs([*head(document, page.now), ("Kind", f"{document['kind']} ({document['apiVersion']})")])
    for name, section in document.items():
        if name in _APART:
            continue
        if document["kind"] == "Secret" and name == "data":
            section = {key: f"{len(value) * 3 // 4} bytes" for key, value in (section or {}).items()}
        page.heading(_titled(name))
        shown = section
        if name == "status" and isinstance(section, dict):
            shown = {key: value for key, value in section.items() if key != "conditions"}
        for line in as_text(shown, "yaml").removesuffix("...\n").splitlines():
            page.line(line, 2)
    if (document.get("status") or {}).get("conditions") is not None:
        conditions(page, document)
    events(page, found)


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]
