"""A campaign's result as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.ledger.chaos.campaign import Made, Result

_SORTS = ("states", "missing", "excused", "duplicated", "duplicated_events", "missing_events", "wrong_ends")
_HEAD = (
    "fault", "injected", "states", "missing", "told as gap", "duplicated", "events twice", "events missing",
    "wrong ends", "back after",
)  # fmt: skip


def table(result: Result) -> str:
    """States count for a fault when they were written in its time."""
    verdict = result.verdict
    rows: list[Sequence[str]] = [_HEAD]
    spans: dict[str, list[Made]] = {}
    for made in result.made:
        spans.setdefault(made.fault, []).append(made)
    for fault, times in spans.items():
        found = [_within(verdict.revisions.get(sort, ()), times) for sort in _SORTS]
        back = [each.back for each in times if each.back is not None]
        rows.append([fault, str(len(times)), *map(str, found), f"{max(back):.1f} s" if back else ""])
    calm = [len(given) - _within(given, result.made) for given in (verdict.revisions.get(sort, ()) for sort in _SORTS)]
    rows.append(["(between)", "", *map(str, calm), ""])
    rows.append(["all", str(len(result.made)), *(str(getattr(verdict, sort)) for sort in _SORTS), ""])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join([*(_aligned(row, widths) for row in rows), "", *_summary(result)])


def _summary(result: Result) -> list[str]:
    verdict = result.verdict
    caught = "never" if result.caught_up is None else f"{result.caught_up:.1f} s after the load"
    return [
        f"pods {verdict.pods}  events {verdict.events}  the ledger started {result.starts} times, ended by itself "
        f"{result.ended} times, caught up {caught}",
        f"first states missing {verdict.missing_first}  last {verdict.missing_last}  pods {verdict.missing_pods}  "
        f"states altered {verdict.altered}  wrong roots {verdict.wrong_owners}  wrong rooms {verdict.wrong_rooms}",
        f"ends inferred, with bounds that hold the truth {verdict.inferred_ends}  ends seen: at most "
        f"{verdict.latest_end:.2f} s later than the machine's other work explains",
        *result.broken,
        f"{'the database tells what etcd held' if result.sound else 'THE DATABASE DIFFERS'}  ({result.seconds:.0f} s)",
        *result.notes,
    ]


def _within(revisions: Sequence[int], spans: Sequence[Made]) -> int:
    return sum(any(span.first < each <= span.last for span in spans) for each in revisions)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *others]).rstrip()
