"""A page of a description: names and values in two columns, tables, and what is below them a little further in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayplan.cli.printers import columns
from bayplan.model.ages import age
from bayplan.model.clock import Instant, parse_rfc3339

NONE = "<none>"
_LONGEST = 140
"""Of a line of an annotation, as kubectl cuts it."""

Doc = dict[str, Any]
Value = str | int | Sequence[str] | None
"""A text, or one for each line; None leaves the name out."""
Pairs = Iterable[tuple[str, Value]]


class Page:
    """Lines in the making."""

    def __init__(self, now: Instant) -> None:
        self.now = now
        self._lines: list[str] = []

    def text(self) -> str:
        """The page."""
        return "".join(f"{line}\n" for line in self._lines)

    def pairs(self, pairs: Pairs, indent: int = 0) -> None:
        """Names and values; a value of several lines goes on below itself."""
        kept = [(f"{name}:", _lines_of(value)) for name, value in pairs if value is not None]
        width = max((len(name) for name, _ in kept), default=0) + 2
        for name, (first, *more) in kept:
            self._add(f"{name:{width}}{first}", indent)
            for line in more:
                self._add(" " * width + line, indent)

    def heading(self, name: str, indent: int = 0) -> None:
        """A name with what follows below it."""
        self._add(f"{name}:", indent)

    def table(self, name: str, head: Sequence[str], rows: Iterable[Sequence[str]], indent: int = 0) -> None:
        """A heading and a table, or `<none>`."""
        body = [*rows]
        if not body:
            self._add(f"{name}:  {NONE}", indent)
            return
        self.heading(name, indent)
        rule = ["-" * len(word) for word in head]
        for line in columns([head, rule, *body]).splitlines():
            self._add(line, indent + 2)

    def line(self, text: str, indent: int = 0) -> None:
        """A line as it is."""
        self._add(text, indent)

    def _add(self, text: str, indent: int) -> None:
        self._lines.append((" " * indent + text).rstrip())


def _lines_of(value: Value) -> list[str]:
    if isinstance(value, str | int):
        return [_safe(each) for each in str(value).splitlines()] or [""]
    return [_safe(each) for each in value or ()] or [NONE]


def _safe(text: str) -> str:
    """What an object says must not steer the terminal."""
    return text.replace("\x1b", "^[")


def mapping(values: Mapping[str, Any] | None, between: str = "=") -> list[str]:
    """`a=1` and `b=2`, a line each, in order."""
    return [f"{key}{between}{_short(str(value))}" for key, value in sorted((values or {}).items())]


def noted(values: Mapping[str, Any]) -> list[str]:
    """`a: 1` a line each; one of several lines, or a long one, stands below its name, further in."""
    found = []
    for key, value in sorted(values.items()):
        text = str(value).removesuffix("\n")
        if "\n" in text or len(key) + len(text) + 2 >= _LONGEST:
            found += [f"{key}:", *(f"  {_short(line, _LONGEST - 2)}" for line in text.split("\n"))]
        else:
            found.append(f"{key}: {text}")
    return found


def _short(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def moment(text: str | None, now: Instant) -> str:
    """A time and how long it is ago."""
    return f"{text} ({age(parse_rfc3339(text), now)} ago)" if text else "<unset>"


def ago(text: str | None, now: Instant) -> str:
    """How long ago a time was."""
    return age(parse_rfc3339(text) if text else None, now)


def head(document: Doc, now: Instant) -> list[tuple[str, Value]]:
    """What every object begins with."""
    meta = document.get("metadata") or {}
    owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
    return [
        ("Name", meta.get("name", "")),
        ("Namespace", meta.get("namespace")),
        ("Created", moment(meta.get("creationTimestamp"), now)),
        ("Labels", mapping(meta.get("labels"))),
        ("Annotations", noted(_shown_annotations(meta))),
        ("Controlled By", f"{owner['kind']}/{owner['name']}" if owner else None),
        ("Finalizers", meta.get("finalizers") or None),
        ("Deletion Due", meta.get("deletionTimestamp")),
    ]


def _shown_annotations(meta: Doc) -> Doc:
    """Without what tools keep for themselves."""
    hidden = "kubectl.kubernetes.io/last-applied-configuration"
    return {key: value for key, value in (meta.get("annotations") or {}).items() if key != hidden}


def conditions(page: Page, document: Doc) -> None:
    """The conditions of a status."""
    found = (document.get("status") or {}).get("conditions") or ()
    rows = [
        [
            each.get("type", ""),
            each.get("status", ""),
            ago(each.get("lastTransitionTime"), page.now),
            each.get("reason") or "-",
            each.get("message") or "",
        ]
        for each in found
    ]
    page.table("Conditions", ["Type", "Status", "Since", "Reason", "Message"], rows)


def events(page: Page, found: Sequence[Doc]) -> None:
    """The events of an object, the latest last, as they are told by `describe` everywhere."""
    rows = [
        [
            each.get("type", ""),
            each.get("reason", ""),
            seen_often(each, page.now),
            (each.get("source") or {}).get("component") or each.get("reportingComponent") or "",
            (each.get("message") or "").strip(),
        ]
        for each in sorted(found, key=seen_last)
    ]
    page.table("Events", ["Type", "Reason", "Age", "From", "Message"], rows)


def seen_last(event: Doc) -> tuple[str, int]:
    """By when an event was seen last; the two generations of the Event API have different fields for it."""
    series = (event.get("series") or {}).get("lastObservedTime")
    when: str = series or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""
    version = (event.get("metadata") or {}).get("resourceVersion", "")
    return when[:19], int(version) if version.isdigit() else 0  # whole seconds: some times have fractions, some not


def seen_often(event: Doc, now: Instant) -> str:
    """`5m (x3 over 20m)`: when an event was seen last and, if often, since when."""
    first = ago(event.get("eventTime") or event.get("firstTimestamp"), now)
    series = event.get("series")
    if series is not None:
        return f"{ago(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {first})"
    count = event.get("count") or 1
    return f"{ago(event.get('lastTimestamp'), now)} (x{count} over {first})" if count > 1 else first
