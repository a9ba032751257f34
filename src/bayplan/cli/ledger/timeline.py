"""`bayplan ledger timeline`: the life of a workload's pods, drawn side by side."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger

if TYPE_CHECKING:
    from bayplan.ledger.questions.present import EventAt
    from bayplan.ledger.questions.timeline import Lane, Timeline

_MARKS = {"waiting": "░", "holding": "▒", "running": "█"}
_LEGEND = "░ waiting for a place   ▒ holds GPUs, does not run   █ runs"
_LATEST = 30
_NARROWEST = 20
_WIDEST_NAME = 40
_TICK = 20


@click.command()
@click.argument("subject", metavar="WORKLOAD|POD")
@click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")
@click.option("--until", metavar="TIME", help="Up to this time, not now.")
@output_option("wide", "json", "yaml")
@on_ledger
def timeline(ledger: Ledger, subject: str, namespace: str | None, until: str | None, output: str | None) -> None:
    """Draw the life of a workload's pods, or of one: waiting, holding, running, and what happened.

    Below the picture stand the latest events; -o wide shows all of them, with conditions.
    """

    async def ask(session: Session) -> Timeline:
        from bayplan.ledger.questions.naming import find_workload
        from bayplan.ledger.questions.timeline import timeline as ask_timeline

        found = await find_workload(session.store, subject, session.scope(namespace))
        return await ask_timeline(session.store, found, session.at(until, "--until"))

    found = ledger.run(ask)
    click.echo(rendered(found, output, shutil.get_terminal_size().columns), nl=False)


def rendered(timeline: Timeline, output: str | None, width: int) -> str:
    """The picture, and the events below it."""
    from bayplan.cli.ledger.get import event_cells
    from bayplan.cli.ledger.printing import plain
    from bayplan.cli.printers import columns, document

    if output in ("json", "yaml"):
        return document(plain(timeline), output)
    events = [each for each in timeline.events if output == "wide" or _notable(each)]
    shown = events if output == "wide" else events[-_LATEST:]
    text = "".join(f"{line}\n" for line in picture(timeline, width))
    if len(shown) < len(events):
        text += f"\nthe latest {len(shown)} of {len(events)} events; -o wide shows all"
    if shown:
        head = ["TIME", "POD", "EVENT", "WHAT", "REASON", "MESSAGE"]
        text += f"\n{columns([head, *map(event_cells, shown)])}"
    return text


def _notable(each: EventAt) -> bool:
    return each.event.event_type != "Condition" or each.event.subject == "DisruptionTarget"


def picture(timeline: Timeline, width: int) -> list[str]:
    """A bar a pod over a common scale of time."""
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.model.ages import human_duration
    from bayplan.model.clock import rfc3339

    subject = timeline.subject
    kind = getattr(subject, "kind", "Pod")
    title = f"{subject.namespace}/{subject.name} ({kind}): {rfc3339(timeline.start)} to {rfc3339(timeline.end)}"
    lines = [f"{title}, {human_duration(timeline.end - timeline.start)}"]
    if not timeline.lanes:
        return [*lines, "It has had no GPU pods."]
    names = [lane.pod.name[-_WIDEST_NAME:] for lane in timeline.lanes]
    wide = max(map(len, names))
    room = max(width - wide - 12, _NARROWEST)
    lines += ["", f"{'':{wide}}  {_scale(timeline, room)}".rstrip()]
    for name, lane in zip(names, timeline.lanes, strict=True):
        gpus_text = f"{gpus(lane.pod.gpu_allocated)} GPU"
        lines.append(f"{name:{wide}}  {_bar(lane, timeline, room)}  {gpus_text}")
    return [*lines, "", _LEGEND]


def _bar(lane: Lane, timeline: Timeline, room: int) -> str:
    """What the pod did for the longest part of each cell."""
    span = max(timeline.end - timeline.start, 1)
    cells = []
    for cell in range(room):
        begin = timeline.start + span * cell // room
        end = max(timeline.start + span * (cell + 1) // room, begin + 1)
        parts = [(min(each.end, end) - max(each.start, begin), _MARKS[each.doing.value]) for each in lane.segments]
        length, mark = max(parts, default=(0, " "))
        cells.append(mark if length > 0 else " ")
    return "".join(cells)


def _scale(timeline: Timeline, room: int) -> str:
    """Times of day, a tick each so many cells; dates where it spans days."""
    from bayplan.model.clock import Instant, rfc3339

    span = timeline.end - timeline.start
    day = 86_400_000_000
    text = ""
    for cell in range(0, room, _TICK):
        at = rfc3339(Instant(timeline.start + span * cell // room))
        word = f"|{at[5:10]} {at[11:16]}" if span >= day else f"|{at[11:19]}"
        text = f"{text:{cell}}{word}"[: max(room, len(word))]
    return text
