"""`bayplan cpu throttling`: containers or control groups of this machine by how much they are throttled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli.invocation import Invocation, output_option
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bayplan.agent.observe import Observer, Watched
    from bayplan.node.throttling.samples import Rates
    from bayplan.service.durations import Duration

    Row = tuple[Watched, Rates]

_COLUMNS = (
    ("NAME", False),
    ("LIMIT", False),
    ("USAGE", False),
    ("THROTTLED", False),
    ("THROTTLED/S", False),
    ("BURSTS/H", False),
    ("WAITING/S", False),
    ("PRESSURE", False),
    ("QUOTA", True),
    ("PERIOD", True),
    ("BURST", True),
    ("PERIODS", True),
    ("PROCESSES", True),
    ("GROUP", True),
)
_SORTS: dict[str, Callable[[Rates], float]] = {
    "rate": lambda rates: rates.throttle_rate,
    "time": lambda rates: rates.throttled_seconds,
    "usage": lambda rates: rates.usage_cpus,
}


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A group in -o json and yaml."""

    group: str
    pod_uid: str
    namespace: str
    pod: str
    container: str
    limit_cpus: float | None
    usage_cpus: float
    throttle_rate: float
    throttled_seconds_per_second: float
    bursts_per_hour: float
    run_queue_seconds_per_second: float
    pressure: float | None
    periods: int
    throttled_periods: int
    alerts: dict[str, str]


@click.command()
@click.option(
    "--for",
    "lasts",
    default="2s",
    show_default=True,
    callback=span,
    metavar="SPAN",
    help="How long to look before printing; with -w between two tables.",
)
@click.option(
    "--window", type=click.Choice(["10s", "1m", "5m"]), default="10s", show_default=True, help="With -w: rates over it."
)
@click.option("-w", "--watch", is_flag=True, help="Print again and again.")
@click.option("--root", default="/", show_default=True, metavar="GROUP", help="Only this group and those below it.")
@click.option("--cgroup-root", default="/sys/fs/cgroup", metavar="DIR", help="Where cgroups are mounted.")
@click.option("-A", "--all", "everything", is_flag=True, help="Groups without a limit as well.")
@click.option(
    "--sort-by", type=click.Choice(list(_SORTS)), default="rate", show_default=True, help="The largest first."
)
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@output_option("wide", "json", "yaml")
@click.pass_obj
def throttling(
    invocation: Invocation,
    lasts: Duration,
    window: str,
    watch: bool,
    root: str,
    cgroup_root: str,
    everything: bool,
    sort_by: str,
    no_headers: bool,
    output: str | None,
) -> None:
    """Show the containers and control groups of this machine by how much they are throttled.

    \b
    THROTTLED     share of the CPU periods in which the group used up its quota and had to wait
    THROTTLED/S   seconds it waited so, a second, summed over CPUs
    WAITING/S     seconds its threads waited for a CPU for any reason, a second
    PRESSURE      share of the time in which some thread waited (PSI; cgroups of version 2)
    """
    import asyncio

    from bayplan.agent.process import new_observer
    from bayplan.agent.reading import group_named, printable
    from bayplan.cli.targets import tell
    from bayplan.model.clock import SystemClock
    from bayplan.node.cgroup.detect import find_tree

    settings = invocation.settings().settings
    tree = find_tree(cgroup_root)
    group = group_named(tree, root)  # GroupGoneError, if there is none
    observer = new_observer(tree, SystemClock(), settings, group.path)

    def show() -> None:
        rows = chosen(observer, window, everything, sort_by)
        text = rendered(rows, output, headers=not no_headers, alarm=_alarm(observer), everything=everything)
        for path in observer.unmeasured:
            tell(f"{printable(path)} has a CPU limit and is not shown: it is not in the hierarchy of cpuacct")
        if watch and sys.stdout.isatty():
            click.clear()
        click.echo(text, nl=False)

    asyncio.run(_look_and_show(observer, lasts.micros, watch, show))


async def _look_and_show(observer: Observer, span_us: int, watch: bool, show: Callable[[], None]) -> None:
    from bayplan.model.clock import Instant

    observer.look()
    while True:
        await observer.clock.sleep_until(Instant(observer.clock.now() + span_us))
        observer.look()
        show()
        if not watch:
            return


def chosen(observer: Observer, window: str, everything: bool, sort_by: str) -> list[Row]:
    """The groups to show, in order."""
    rows = [
        (each, each.history.rates(window))
        for each in observer.watched.values()
        if each.reading is not None and (everything or each.reading.bandwidth.quota_us is not None)
    ]
    return sorted(rows, key=lambda row: (-_SORTS[sort_by](row[1]), row[0].path))


def _alarm(observer: Observer) -> Callable[[Rates], bool]:
    from bayplan.cli.printers import coloured

    threshold = observer.thresholds.throttled
    return lambda rates: coloured(sys.stdout) and rates.throttle_rate > threshold


def rendered(
    rows: Sequence[Row],
    output: str | None,
    *,
    headers: bool,
    alarm: Callable[[Rates], bool],
    everything: bool = False,
) -> str:
    """The table, or the document; lines above the threshold in red."""
    from bayplan.cli.printers import columns, document

    if output in ("json", "yaml"):
        return document({"kind": "List", "items": [shown(*row) for row in rows]}, output)
    if not rows:
        return "No groups found\n" if everything else "No groups with a CPU limit found; -A shows all\n"
    visible = [index for index, (_, wide) in enumerate(_COLUMNS) if output == "wide" or not wide]
    head = [[_COLUMNS[index][0] for index in visible]] if headers else []
    cells = [_cells(*row) for row in rows]
    lines = columns([*head, *([line[index] for index in visible] for line in cells)]).splitlines()
    red = {len(head) + index for index, (_, rates) in enumerate(rows) if alarm(rates)}
    return "".join((click.style(line, fg="red") if index in red else line) + "\n" for index, line in enumerate(lines))


def _cells(watched: Watched, rates: Rates) -> list[str]:
    from bayplan.agent.reading import printable

    reading = watched.reading
    assert reading is not None
    bandwidth = reading.bandwidth
    return [
        printable(short_name(watched)),
        "<none>" if bandwidth.cpus is None else f"{bandwidth.cpus * 1000:.0f}m",
        f"{rates.usage_cpus * 1000:.0f}m",
        f"{rates.throttle_rate:.1%}",
        f"{rates.throttled_seconds:.3f}",
        f"{watched.history.rates('1h').bursts_per_hour:.0f}",
        f"{rates.run_queue_seconds:.3f}",
        "<none>" if reading.pressure is None else f"{rates.pressure:.1%}",
        "max" if bandwidth.quota_us is None else f"{bandwidth.quota_us}",
        f"{bandwidth.period_us}",
        f"{bandwidth.burst_us}",
        f"{rates.delta.periods}",
        f"{reading.processes}",
        printable(watched.path),
    ]


def short_name(watched: Watched) -> str:
    """A group for a table: what people call it, or its pod's uid and its id where the kubelet's links do not tell."""
    name = watched.name
    if name.pod:
        return f"{name.namespace}/{name.pod}/{name.container}"
    return f"{watched.pod_uid}/{watched.container_id[:12]}" if watched.container_id else watched.path


def shown(watched: Watched, rates: Rates) -> Shown:
    """A group as a program reads it."""
    reading, name = watched.reading, watched.name
    assert reading is not None
    return Shown(
        group=watched.path,
        pod_uid=watched.pod_uid,
        namespace=name.namespace,
        pod=name.pod,
        container=name.container,
        limit_cpus=reading.bandwidth.cpus,
        usage_cpus=round(rates.usage_cpus, 6),
        throttle_rate=round(rates.throttle_rate, 6),
        throttled_seconds_per_second=round(rates.throttled_seconds, 6),
        bursts_per_hour=round(watched.history.rates("1h").bursts_per_hour, 3),
        run_queue_seconds_per_second=round(rates.run_queue_seconds, 6),
        pressure=None if reading.pressure is None else round(rates.pressure, 6),
        periods=rates.delta.periods,
        throttled_periods=rates.delta.throttled_periods,
        alerts={alert: str(state) for alert, state in watched.active().items()},
    )
