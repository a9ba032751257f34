"""`bayplan ledger usage`: GPU-hours by whom, exactly; CSV for chargeback, bars for people."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger
from bayplan.cli.ledger.times import window_options
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from bayplan.cli.printers import Listing
    from bayplan.ledger.questions.usage import Usage

_NARROWEST, _WIDEST = 10, 60


@click.command()
@click.option(
    "--by",
    default="namespace",
    show_default=True,
    metavar="WHAT[,WHAT]",
    help="namespace, user, workload, label:KEY, model, node, cluster; or several.",
)
@window_options("7d")
@click.option("-n", "--namespace", metavar="NAME", help="Only of this namespace.")
@output_option("wide", "json", "yaml", "csv")
@on_ledger
def usage(ledger: Ledger, by: str, since: str, until: str | None, step: int | None, **flags: Any) -> None:
    """Show GPU-hours: GPUs held times hours, from binding to release, whatever was done with them.

    \b
    bayplan ledger usage --by user --since 30d
    bayplan ledger usage --by namespace,model --since 2026-01-01 --until 2026-02-01 -o csv
    bayplan ledger usage --by label:team --since 1d --step 1h

    Steps add up to their line, and lines to the whole, exactly: GPU-SECONDS in CSV are not rounded.
    """

    async def ask(session: Session) -> Usage:
        from bayplan.ledger.questions.usage import usage as ask_usage

        window = session.window(since, until, step)
        return await ask_usage(session.store, by.split(","), window, session.scope(flags["namespace"]))

    found = ledger.run(ask)
    click.echo(rendered(found, flags["output"]), nl=False)
    if not found.lines:
        tell("No GPU was held in that time")


def rendered(usage: Usage, output: str | None, *, width: int | None = None) -> str:
    """The answer as the flags want it; a width means somebody looks at it."""
    from bayplan.cli.ledger.printing import on_terminal
    from bayplan.cli.printers import document, render

    if output in ("json", "yaml"):
        return document(_document(usage), output)
    if output is None and width is None and on_terminal():
        width = shutil.get_terminal_size().columns
    if not usage.lines and output != "csv":
        return ""
    if output is None and (width is not None or usage.window.step is None):
        return render(_summary(usage, width), None)
    return render(_steps(usage), output)


def _summary(usage: Usage, width: int | None) -> Listing:
    """A line a key, with a bar (or the steps as little columns) where there is a width."""
    from bayplan.cli.ledger.printing import bar, percent, spark
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.ledger.questions.amounts import gpu_hours

    lines = [([*line.key, gpu_hours(line.total), percent(line.total, usage.total)], line) for line in usage.lines]
    heads = [*(each.upper() for each in usage.by), "GPU-HOURS", "SHARE"]
    taken = sum(max(len(head), *(len(str(cells[i])) for cells, _ in lines)) + 3 for i, head in enumerate(heads))
    room = 0 if width is None else min(max(width - taken, _NARROWEST), _WIDEST)
    most = max(line.total for line in usage.lines)
    rows = []
    for cells, line in lines:
        picture = (
            bar(line.total, most, room) if usage.window.step is None else spark(line.amounts, room) if room else ""
        )
        rows.append(Row([*cells, picture] if room else cells, line.key[0], None))
    if len(rows) > 1:
        whole = ["TOTAL", *[""] * (len(usage.by) - 1), gpu_hours(usage.total), "100%"]
        rows.append(Row([*whole, ""] if room else whole, "total", None))
    return Listing([*map(Column, heads), *([Column("")] if room else [])], rows)


def _steps(usage: Usage) -> Listing:
    """A line a step and key."""
    from bayplan.cli.printers import Column, Listing, Row
    from bayplan.ledger.questions.amounts import gpu_hours, gpu_seconds
    from bayplan.model.clock import Instant, rfc3339

    edges = usage.window.edges()
    rows = [
        Row(
            [
                rfc3339(Instant(edges[i])),
                rfc3339(Instant(edges[i + 1])),
                *line.key,
                gpu_seconds(line.amounts[i]),
                gpu_hours(line.amounts[i], 6),
            ],
            line.key[0],
            None,
        )
        for i in range(len(edges) - 1)
        for line in usage.lines
    ]
    heads = ("Start", "End", *usage.by, "GPU-Seconds", "GPU-Hours")
    return Listing([*map(Column, heads)], rows)


def _document(usage: Usage) -> dict[str, Any]:
    from bayplan.ledger.questions.amounts import HOUR
    from bayplan.model.clock import Instant, rfc3339_micro

    def line(key: tuple[str, ...], amounts: tuple[int, ...]) -> dict[str, Any]:
        total = sum(amounts)
        named = dict(zip(usage.by, key, strict=True))
        steps = {"steps": list(amounts)} if usage.window.step is not None else {}
        return {**named, "gpuHours": round(total / HOUR, 6), "gpuNanoseconds": total, **steps}

    edges = [rfc3339_micro(Instant(edge)) for edge in usage.window.edges()]
    return {
        "kind": "GpuUsage",
        "by": list(usage.by),
        "since": edges[0],
        "until": edges[-1],
        **({"starts": edges[:-1]} if usage.window.step is not None else {}),
        "gpuHours": round(usage.total / HOUR, 6),
        "gpuNanoseconds": usage.total,
        "items": [line(each.key, each.amounts) for each in usage.lines],
    }
