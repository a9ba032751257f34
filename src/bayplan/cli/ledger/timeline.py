"""`bayplan ledger timeline`: the life of a workload's pods, drawn side by side."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger

if TYPE_CHECKING:
    from bayplan.ledger.questions.present import EventAt
    from bayplan.ledger.questions.timeline import Segment, Timeline

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
@output_option("wide", "json", "yaml", "csv")
@on_ledger
def timeline(ledger: Ledger, subject: str, namespace: str | None, until: str | None, output: str | None) -> None:
    """Draw the life of a workload's pods, or of one: waiting, holding, running, and what happened.

    Below the picture stand the latest events; -o wide shows all of them, with conditions. -o csv has the bars.
    """

    async def ask(session: Session) -> Timeline:
        from bayplan.ledger.questions.naming import find_workload
        from bayplan.ledger.questions.timeline import timeline as ask_timeline

        found = await find_workload(session.store, subject, session.scope(namespace))
        at = session.known_of(found.cluster, session.at(until, "--until"))
        return await ask_timeline(session.store, found, at)

    found = ledger.run(ask)
    click.echo(rendered(found, output, shutil.get_terminal_size().columns), nl=False)


def rendered(timeline: Timeline, output: str | None, width: int) -> str:
    """The picture, and the events below it."""
    from bayplan.cli.ledger.get import event_cells
    from bayplan.cli.ledger.printing import plain
    from bayplan.cli.printers import columns, document

    if output in ("json", "yaml"):
        return document(plain(timeline), output)
    if output == "csv":
        return _table(timeline)
    events = [each for each in timeline.events if output == "wide" or _notable(each)]
    shown = events if output == "wide" else events[-_LATEST:]
    text = "".join(f"{line}\n" for line in picture(timeline, width))
    if len(shown) < len(events):
        text += f"\nthe latest {len(shown)} of {len(events)} events; -o wide shows all"
    if shown:
        head = ["TIME", "POD", "EVENT", "WHAT", "REASON", "MESSAGE"]
        text += f"\n{columns([head, *map(event_cells, shown)])}"
    return text


def _table(timeline: Timeline) -> str:
    """What the picture is drawn from: a line for each while of each pod."""
    from bayplan.cli.printers import Column, Listing, Row, render
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.model.clock import rfc3339_micro

    bars = [(timeline.subject.name, timeline.refused, "no quota", "", timeline.subject.uid)]
    bars += [
        (lane.pod.name, lane.segments, gpus(lane.pod.gpu_allocated), lane.pod.node_name, lane.pod.uid)
        for lane in timeline.lanes
    ]
    rows = [
        [name, each.doing.value, rfc3339_micro(each.start), rfc3339_micro(each.end), *rest]
        for name, segments, *rest in bars
        for each in segments
    ]
    heads = ("Pod", "Doing", "Start", "End", "GPUs", "Node", "UID")
    return render(Listing([*map(Column, heads)], [Row(cells, "", None) for cells in rows]), "csv")


def _notable(each: EventAt) -> bool:
    return each.event.event_type != "Condition" or each.event.subject == "DisruptionTarget"


def picture(timeline: Timeline, width: int) -> list[str]:
    """A bar a pod over a common scale of time; above them one for the time in which a quota forbade pods."""
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.model.ages import human_duration
    from bayplan.model.clock import rfc3339

    subject = timeline.subject
    kind = getattr(subject, "kind", "Pod")
    name, start, end = f"{subject.namespace}/{subject.name} ({kind})", rfc3339(timeline.start), rfc3339(timeline.end)
    if timeline.end < timeline.start:
        return [f"{name} did not exist yet at {end}: it was made at {start}."]
    lines = [f"{name}: {start} to {end}, {human_duration(timeline.end - timeline.start)}"]
    if not timeline.lanes and not timeline.refused:
        return [*lines, "It had no GPU pods by then."]
    bars = [(subject.name, timeline.refused, "no quota")] if timeline.refused else []
    bars += [(lane.pod.name, lane.segments, f"{gpus(lane.pod.gpu_allocated)} GPU") for lane in timeline.lanes]
    wide = max(len(name[-_WIDEST_NAME:]) for name, _, _ in bars)
    room = max(width - wide - 12, _NARROWEST)
    lines += ["", f"{'':{wide}}  {_scale(timeline, room)}".rstrip()]
    for name, segments, what in bars:
        lines.append(f"{name[-_WIDEST_NAME:]:{wide}}  {_bar(segments, timeline, room)}  {what}")
    return [*lines, "", _LEGEND]


def _bar(segments: Sequence[Segment], timeline: Timeline, room: int) -> str:
    """What the pod did for the longest part of each cell."""
    span = max(timeline.end - timeline.start, 1)
    cells = []
    for cell in range(room):
        begin = timeline.start + span * cell // room
        end = max(timeline.start + span * (cell + 1) // room, begin + 1)
        parts = [(min(each.end, end) - max(each.start, begin), _MARKS[each.doing.value]) for each in segments]
        length, mark = max(parts, default=(0, " "))
        cells.append(mark if length > 0 else " ")
    return "".join(cells)


def _scale(timeline: Timeline, room: int) -> str:
    """Times of day, a tick each so many cells; dates where it spans days. One that does not fit is left out: what is
    left of it would be another time.
    """
    from bayplan.model.clock import Instant, rfc3339

    span = timeline.end - timeline.start
    day = 86_400_000_000
    text = ""
    for cell in range(0, room, _TICK):
        at = rfc3339(Instant(timeline.start + span * cell // room))
        word = f"|{at[5:10]} {at[11:16]}" if span >= day else f"|{at[11:19]}"
        if cell and cell + len(word) > room:
            break
        text = f"{text:{cell}}{word}"
    return text
