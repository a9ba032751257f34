"""`bayplan cpu burst`: let throttled containers burst, or show who would, by how much and why."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import Invocation, output_option
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bayplan.agent.burst import BurstAgent, Happening, Watched
    from bayplan.agent.burst_modes import Mode
    from bayplan.model.clock import Instant
    from bayplan.service.durations import Duration
    from bayplan.service.lifecycle import Service

_FRAME = 0.25
_SHOWN = 10
"""Happenings below the live table."""
_KEPT = 100_000
"""The latest happenings in -o json: a node full of bursts has some hundred a second, and --for may say a day."""
_COLUMNS = ("GROUP", "LIMIT", "NOW", "THROTTLED", "PERIODS", "BURSTS", "STATE")
_REHEARSED = ("GROUP", "LIMIT", "WOULD", *_COLUMNS[3:])


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A group in -o json and yaml."""

    group: str
    limit_cpus: float | None
    now_cpus: float | None
    """What it has now; in a dry run that is its own limit, whatever it would get."""
    would_cpus: float | None
    """What it has, or would have were it written."""
    periods: int
    throttled_periods: int
    throttle_rate: float
    bursts: int
    state: str


class _Wish(msgspec.Struct, frozen=True):
    mode: str
    groups: tuple[str, ...]
    apply: bool
    beside_kubelet: bool
    journal: str | None
    cgroup_root: str
    output: str | None


@click.command()
@click.option(
    "--mode",
    type=click.Choice(["short", "koordinator"]),
    default="short",
    show_default=True,
    help="Bursts of 200 ms, or Koordinator's standing burst and quota in steps.",
)
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only it and those below it; repeatable.")
@click.option("--dry-run/--apply", "dry", default=True, help="Only show (the default), or write as well.")
@click.option("--for", "lasts", default="10s", show_default=True, callback=span, metavar="SPAN", help="How long.")
@click.option("--interval", callback=span, metavar="SPAN", help="Between two looks: 50ms, with koordinator 1s.")
@click.option("--beside-kubelet", is_flag=True, help="Write to the groups of a kubelet, too.")
@click.option("--journal", metavar="FILE", help="Where writes are kept until undone.")
@click.option("--cgroup-root", default="/sys/fs/cgroup", metavar="DIR", help="Where cgroups are mounted.")
@output_option("json", "yaml")
@click.pass_obj
def burst(invocation: Invocation, /, lasts: Duration, interval: Duration | None, dry: bool, **flags: Any) -> int:
    """Let throttled containers burst, or show who would, by how much and why.

    With --apply limits are written; each is written down beforehand and taken back in time, at the end, on SIGTERM and
    Ctrl-C, and even when the process is killed. Without it nothing is written.

    \b
    bayplan cpu burst                                   who would burst in the next 10 s
    bayplan cpu burst --group /app --apply --for 1h     let the groups below /app burst for an hour
    bayplan cpu burst --mode koordinator --apply        as Koordinator does
    """
    from bayplan.service.lifecycle import run

    wish = _Wish(apply=not dry, **flags)
    mode = _mode(wish.mode, interval)

    async def main(service: Service) -> None:
        await _burst(service, wish, mode, lasts)

    return run("burst", invocation.quiet_settings(), main, endpoint=False)


def _mode(name: str, interval: Duration | None) -> Mode:
    from bayplan.agent.burst_modes import KoordinatorMode, ShortMode
    from bayplan.model.clock import MILLISECOND, SECOND
    from bayplan.node.burst.koordinator import BurstConfig, Policy
    from bayplan.node.burst.short import ShortBurst
    from bayplan.node.throttling.kernels import has_burst

    if name == "koordinator":
        has = has_burst(os.uname().release)
        if not has:
            click.echo("this kernel has no cfs_burst: the quota follows throttling, no standing burst", err=True)
        config = BurstConfig(policy=Policy.AUTO if has else Policy.CFS_QUOTA_BURST_ONLY)
        return KoordinatorMode(config, SECOND if interval is None else interval.micros)
    rule = ShortBurst()
    if interval is None:
        return ShortMode(rule)
    if not rule.close_look <= interval.micros <= rule.window:
        least, most = rule.close_look // MILLISECOND, rule.window // MILLISECOND
        raise click.BadParameter(f'expected {least}ms to {most}ms; got "{interval}"', param_hint="'--interval'")
    return ShortMode(ShortBurst(look=interval.micros))


async def _burst(service: Service, wish: _Wish, mode: Mode, lasts: Duration) -> None:
    from bayplan.agent.burst import BurstAgent
    from bayplan.agent.bursting import Bursting
    from bayplan.agent.kubelet import owned_by_kubelet
    from bayplan.agent.reading import group_named
    from bayplan.node.cgroup.detect import find_tree

    tree = find_tree(wish.cgroup_root)
    # GroupGoneError, where there is none
    wish = msgspec.structs.replace(wish, groups=tuple(group_named(tree, path).path for path in wish.groups))
    if wish.apply:
        _check_rights(wish)
    happenings: deque[Happening] = deque(maxlen=_SHOWN if wish.output is None else _KEPT)
    live = wish.output is None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def tell(happening: Happening) -> None:
        happenings.append(happening)
        if wish.output is None and not live:
            click.echo(happening_line(happening))

    may_touch = None if wish.beside_kubelet or not wish.apply else lambda path: not owned_by_kubelet(path)
    agent = BurstAgent(tree, mode, service.clock, tell, below=wish.groups or ("/",), may_touch=may_touch)
    journal, root = _journal(wish.journal), wish.cgroup_root
    part = Bursting(agent, service.clock, journal, cgroup_root=root, lasts=lasts.micros)
    going = asyncio.create_task(part.run(write=wish.apply))
    stopped = asyncio.create_task(service.stopped())
    try:
        if live:
            await _in_place(agent, happenings, wish, [going, stopped])
        await asyncio.wait([going, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        going.cancel()
        stopped.cancel()
        await asyncio.wait([going, stopped])
    if not going.cancelled():
        going.result()  # its error is the answer, without a table of what was not done
    _finish(agent, happenings, wish)


def _journal(given: str | None) -> Path:
    from pathlib import Path

    from bayplan.agent.process import journal_folder

    return journal_folder() / "burst.journal" if given is None else Path(given)


def _check_rights(wish: _Wish) -> None:
    """Raise OwnedByKubeletError or BurstRightsError before anything is written."""
    from bayplan.agent.kubelet import may_write
    from bayplan.agent.rights import check_rights

    for path in wish.groups:
        may_write(path, beside_kubelet=wish.beside_kubelet)
    check_rights(wish.cgroup_root)


async def _in_place(
    agent: BurstAgent, happenings: deque[Happening], wish: _Wish, ends: list[asyncio.Task[None]]
) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from bayplan.cli.printers import columns

    console = Console(file=sys.stdout, highlight=False)
    title = f"burst {wish.mode}  {'applied' if wish.apply else 'dry run: nothing is written'}  Ctrl-C ends"
    with Live(console=console, screen=True, auto_refresh=False) as display:
        while not any(each.done() for each in ends):
            table = columns(table_lines(agent.watched.values(), applied=wish.apply)).splitlines()
            del table[max(3, console.height - _SHOWN - 3) :]
            news = [happening_line(each) for each in happenings]
            body = Text("\n".join([*table, "", *news]), no_wrap=True, overflow="ellipsis")
            display.update(Group(Text(title, "bold"), body), refresh=True)
            await asyncio.wait(ends, timeout=_FRAME, return_when=asyncio.FIRST_COMPLETED)


def happening_line(happening: Happening) -> str:
    """One thing that happened."""
    from bayplan.agent.reading import printable

    limit = "" if happening.limit_cpus is None else f"  {happening.limit_cpus:.3g} CPUs"
    why = f"  ({happening.why})" if happening.why else ""
    return printable(f"{_clock(happening.at)}  {happening.what:11}  {happening.path}{limit}{why}")


def shown(watched: Watched, *, applied: bool) -> Shown:
    """A group for people and programs alike: rates since it is watched."""
    first, now = watched.first, watched.counters
    return Shown(
        group=watched.path,
        limit_cpus=watched.own.cpus,
        now_cpus=(watched.given if applied and watched.given else watched.own).cpus,
        would_cpus=(watched.given or watched.own).cpus,
        periods=now.periods - first.periods,
        throttled_periods=now.throttled_periods - first.throttled_periods,
        throttle_rate=watched.throttled_share,
        bursts=watched.bursts,
        state=watched.word,
    )


def table_lines(watched: Iterable[Watched], *, applied: bool = True) -> list[list[str]]:
    """The groups, the most throttled first."""
    from bayplan.agent.reading import printable

    rows = sorted((shown(each, applied=applied) for each in watched), key=lambda row: (-row.throttle_rate, row.group))
    return [
        [*(_COLUMNS if applied else _REHEARSED)],
        *(
            [
                printable(row.group),
                f"{row.limit_cpus or 0:.3g}",
                f"{row.would_cpus or 0:.3g}",
                f"{row.throttle_rate:.0%}",
                f"{row.throttled_periods}/{row.periods}",
                str(row.bursts),
                row.state,
            ]
            for row in rows
        ),
    ]


def _finish(agent: BurstAgent, happenings: deque[Happening], wish: _Wish) -> None:
    """What was done, or would have been."""
    from bayplan.agent.reading import printable
    from bayplan.cli.cpu.camel_names import camel_names
    from bayplan.cli.printers import columns, document
    from bayplan.model.clock import rfc3339_micro

    watched = sorted(agent.watched.values(), key=lambda each: each.path)
    if wish.output is not None:
        groups = [shown(each, applied=wish.apply) for each in watched]
        told = [{**camel_names(each), "at": rfc3339_micro(each.at)} for each in happenings]
        whole = {"mode": wish.mode, "applied": wish.apply, "groups": groups, "happenings": told}
        click.echo(document(whole, wish.output), nl=False)
        return
    for path in agent.unmeasured:
        click.echo(f"{printable(path)} has a CPU limit and is left out: it is not in cpuacct's hierarchy", err=True)
    if agent.left_out:
        click.echo(f"groups of the kubelet left alone: {agent.left_out}; --beside-kubelet takes them in", err=True)
    if not watched:
        if not (agent.left_out or agent.unmeasured):
            below = f" below {', '.join(wish.groups)}" if wish.groups else ""
            click.echo(f"no group with a CPU limit{below}", err=True)
        return
    click.echo(columns(table_lines(watched, applied=wish.apply)), nl=False)
    done = "every limit is back" if wish.apply else f"nothing was written: {_to_write(watched, wish)}"
    click.echo(f"groups {len(watched)}, bursts {sum(each.bursts for each in watched)}; {done}")


def _to_write(watched: list[Watched], wish: _Wish) -> str:
    """How a dry run would be no dry run; the kubelet's groups need one flag more."""
    from bayplan.agent.kubelet import owned_by_kubelet

    owned = sum(owned_by_kubelet(each.path) for each in watched)
    if wish.beside_kubelet or not owned:
        return "--apply does it"
    if owned == len(watched):
        return "--apply --beside-kubelet does it, for they are the kubelet's"
    return f"--apply does it; {owned} of the groups are the kubelet's: for them --beside-kubelet as well"


def _clock(at: Instant) -> str:
    from bayplan.model.clock import rfc3339_micro

    return rfc3339_micro(at)[11:23]
