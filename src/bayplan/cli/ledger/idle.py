"""`bayplan ledger idle`: GPUs that nobody holds, now and over time; with --held, those that are held and not used."""

from __future__ import annotations

import re
import shutil
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger
from bayplan.cli.ledger.times import span_option, window_options
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bayplan.cli.printers import Listing
    from bayplan.ledger.questions.held import Holder
    from bayplan.ledger.questions.idle import Devices, IdleTime
    from bayplan.ledger.questions.stranded import Beside

_WHOLE = 100
_NARROWEST, _WIDEST = 10, 60
_NOT_KNOWN = "not known"


def _share(_: click.Context, __: click.Parameter, value: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", value.strip())
    if match is None or not 0 < float(match[1]) <= _WHOLE:
        raise click.BadParameter(f'expected a share such as 10%; got "{value}"')
    return float(match[1]) / _WHOLE


def _prices(_: click.Context, __: click.Parameter, values: Iterable[str]) -> dict[str, Decimal]:
    found = {}
    for value in values:
        model, _equals, price = value.rpartition("=")
        try:
            found[model] = Decimal(price)
        except InvalidOperation as fault:
            raise click.BadParameter(f'expected MODEL=PRICE, such as H100=3.5; got "{value}"') from fault
        if not model or not found[model].is_finite() or found[model] < 0:
            raise click.BadParameter(f'expected MODEL=PRICE, such as H100=3.5; got "{value}"')
    return found


def _beside(_: click.Context, __: click.Parameter, value: str) -> Beside:
    from bayplan.ledger.questions.stranded import Beside
    from bayplan.model.quantity import QuantityError, parse

    wrong = click.BadParameter(f'expected cpu, memory or both, such as cpu=4,memory=16Gi; got "{value}"')
    found: dict[str, int] = {}
    for part in value.split(","):
        name, _equals, amount = part.strip().partition("=")
        try:
            quantity = parse(amount)
        except QuantityError as fault:
            raise wrong from fault
        if name not in Beside.__struct_fields__ or name in found or quantity.nanos < 0:
            raise wrong
        found[name] = quantity.milli() if name == "cpu" else quantity.value()
    return Beside(**found)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags ask for."""

    since: str | None
    until: str | None
    step: int | None
    beside: Beside
    held: bool
    below: float
    lasting: int
    price: dict[str, Decimal]
    namespace: str | None
    output: str | None


@click.command()
@window_options(None)
@click.option(
    "--beside",
    default="cpu=1,memory=1Gi",
    show_default=True,
    callback=_beside,
    metavar="AMOUNTS",
    help="What a pod needs with each GPU; idle ones without it are stranded. One that is not named keeps its default.",
)
@click.option("--held", is_flag=True, help="Pods that hold GPUs and do not use them.")
@click.option(
    "--below",
    default="10%",
    show_default=True,
    callback=_share,
    metavar="SHARE",
    help="With --held: used less than this.",
)
@click.option(
    "--for",
    "lasting",
    default="1h",
    show_default=True,
    callback=span_option,
    metavar="SPAN",
    help="With --held: for at least so long.",
)
@click.option(
    "--price",
    multiple=True,
    callback=_prices,
    metavar="MODEL=PRICE",
    help="With --held: what a GPU-hour of a model costs; repeatable.",
)
@click.option("-n", "--namespace", metavar="NAME", help="With --held: only of this namespace.")
@output_option("wide", "json", "yaml", "csv")
@on_ledger
def idle(ledger: Ledger, **flags: Any) -> None:
    """Show the GPUs that nobody holds: capacity less what is allocated, on each node.

    \b
    bayplan ledger idle                                  now
    bayplan ledger idle --since 7d --step 1d -o csv      over time, in GPU-seconds
    bayplan ledger idle --beside cpu=8,memory=64Gi       what pods that need so much with each GPU can have
    bayplan ledger idle --held --below 10% --for 1h --price H100=3.5

    STRANDED are those of the idle that no pod can get: their node is not ready or cordoned, or has too little CPU or
    memory left beside them, or no room for another pod. Of a time before the ledger kept that it is not known.
    """
    wish = Wish(**flags)
    if wish.step is not None and (wish.since is None or wish.held):
        raise click.UsageError("--step goes with --since, and not with --held")
    if wish.held:
        _held(ledger, wish)
    elif wish.since is not None:
        _over_time(ledger, wish, wish.since)
    else:
        _now(ledger, wish)


def _now(ledger: Ledger, wish: Wish) -> None:
    async def ask(session: Session) -> tuple[list[Devices], bool]:
        from bayplan.ledger.questions.idle import idle_at

        at = session.at(wish.until, "--until")
        return await idle_at(session.store, at, session.scope(), wish.beside), session.several

    devices, several = ledger.run(ask)
    _echo(_devices_text(devices, wish.output, several=several), "No GPUs are known")


def _over_time(ledger: Ledger, wish: Wish, since: str) -> None:
    async def ask(session: Session) -> tuple[IdleTime, bool]:
        from bayplan.ledger.questions.idle import idle as ask_idle

        window = session.window(since, wish.until, wish.step)
        return await ask_idle(session.store, window, session.scope(), wish.beside), session.several

    found, several = ledger.run(ask)
    _echo(time_text(found, wish.output, several=several), "No GPUs were known in that time")


def _held(ledger: Ledger, wish: Wish) -> None:
    async def ask(session: Session) -> tuple[list[Holder], bool]:
        from bayplan.ledger.questions.held import HeldRule, held_unused

        window = session.window(wish.since or "7d", wish.until, None)
        rule = HeldRule(wish.below, wish.lasting)
        scope = session.scope(wish.namespace)
        found = await held_unused(session.store, window.until, window.since, rule, wish.price, scope)
        return found, session.several

    holders, several = ledger.run(ask)
    models = sorted({each.model for each in holders if each.model})
    for model in sorted(wish.price.keys() - set(models)) if models else ():
        tell(f"--price {model}: no GPU of that model is among them; there are {', '.join(models)}")
    if holders and all(each.unmeasured >= each.gpus for each in holders):
        tell("none of these GPUs is measured: name a Prometheus that measures them, ledger.prometheus")
    _echo(held_text(holders, wish.output, several=several, prices=bool(wish.price)), "All GPUs that are held are used")


def _echo(text: str, nothing: str) -> None:
    click.echo(text, nl=False)
    if not text:
        tell(nothing)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], several: bool, wide: Sequence[str] = ()) -> Listing:
    """Rows that begin with their cluster, which is shown where there are several."""
    from bayplan.cli.printers import Column, Listing, Row

    first = 0 if several else 1
    columns = [Column("Cluster"), *map(Column, heads), *(Column(each, wide=True) for each in wide)]
    return Listing(columns[first:], [Row(list(row)[first:], "", None) for row in rows])


def _number(amount: int | None, shown: Callable[[int], str]) -> str:
    return _NOT_KNOWN if amount is None else shown(amount)


def _devices_text(devices: Sequence[Devices], output: str | None, *, several: bool) -> str:
    """The places, and by model; programs get number and reason apart."""
    from bayplan.cli.ledger.printing import UNKNOWN, plain
    from bayplan.cli.printers import document, render
    from bayplan.ledger.questions.amounts import gpus

    if output in ("json", "yaml"):
        items = [{**plain(each), **plain(each.place), "idle": each.idle} for each in devices]
        for item in items:
            del item["place"]
        return document({"kind": "List", "items": items}, output)
    if not devices:
        return ""

    def stranded(each: Devices) -> list[str]:
        number = _number(each.stranded, gpus)
        if output == "csv":
            return [number, each.why]
        return [f"{number} ({each.why})" if each.why else number]

    rows = [
        (
            each.place.cluster,
            each.place.node,
            each.model or UNKNOWN,
            gpus(each.capacity),
            gpus(each.allocated),
            gpus(each.idle),
            *stranded(each),
            each.place.resource,
        )
        for each in devices
    ]
    heads = ("Node", "Model", "Capacity", "Allocated", "Idle", "Stranded", *(["Why"] if output == "csv" else []))
    table = render(_table(heads, rows, several, ("Resource",)), output)
    return f"{table}\n{_models_text(devices)}" if output is None else table


def _models_text(devices: Sequence[Devices]) -> str:
    from bayplan.cli.ledger.printing import UNKNOWN
    from bayplan.cli.printers import columns
    from bayplan.ledger.questions.amounts import gpus
    from bayplan.ledger.questions.idle import by_model

    models = [
        [
            model or UNKNOWN,
            gpus(each.capacity),
            gpus(each.allocated),
            gpus(each.capacity - each.allocated),
            _number(each.stranded, gpus),
        ]
        for model, each in by_model(devices).items()
    ]
    return columns([["MODEL", "CAPACITY", "ALLOCATED", "IDLE", "STRANDED"], *models])


def time_text(found: IdleTime, output: str | None, *, several: bool, width: int | None = None) -> str:
    """Idle GPU-hours a node, with the steps as little columns where somebody looks; else a line a step."""
    from bayplan.cli.ledger.printing import on_terminal
    from bayplan.cli.printers import document, render

    if output in ("json", "yaml"):
        return document(_time_document(found), output)
    if not found.lines:
        return ""
    if output is None and width is None and on_terminal():
        width = shutil.get_terminal_size().columns
    if output is None and (width is not None or found.window.step is None):
        return render(_idle_summary(found, several, width), None)
    return render(_idle_steps(found, several), output)


def _time_document(found: IdleTime) -> dict[str, Any]:
    """GPU-nanoseconds, a number for each step; and where the steps begin."""
    from bayplan.cli.ledger.printing import plain
    from bayplan.model.clock import Instant, rfc3339_micro

    starts = [rfc3339_micro(Instant(edge)) for edge in found.window.edges()[:-1]]
    lines = [{**plain(line), "idle": list(line.idle)} for line in found.lines]
    return {"window": plain(found.window), "starts": starts, "lines": lines}


def _idle_summary(found: IdleTime, several: bool, width: int | None) -> Listing:
    from bayplan.cli.ledger.printing import UNKNOWN, percent, spark
    from bayplan.ledger.questions.amounts import gpu_hours

    room = min(max((width or 0) - 98, _NARROWEST), _WIDEST) if width is not None and found.window.step else 0
    rows = [
        (
            line.place.cluster,
            line.place.node,
            line.model or UNKNOWN,
            gpu_hours(sum(line.capacity)),
            gpu_hours(sum(line.allocated)),
            gpu_hours(sum(line.idle)),
            percent(sum(line.idle), sum(line.capacity)),
            _number(line.total_stranded, gpu_hours),
            *([spark(line.idle, room, top=max(line.capacity))] if room else []),
        )
        for line in found.lines
    ]
    sums = ("Capacity(GPU-h)", "Allocated(GPU-h)", "Idle(GPU-h)", "Share", "Stranded(GPU-h)")
    return _table(("Node", "Model", *sums, *([""] if room else [])), rows, several)


def _idle_steps(found: IdleTime, several: bool) -> Listing:
    from bayplan.cli.ledger.printing import UNKNOWN
    from bayplan.ledger.questions.amounts import gpu_seconds
    from bayplan.model.clock import Instant, rfc3339

    edges = found.window.edges()
    rows = [
        (
            line.place.cluster,
            rfc3339(Instant(edges[i])),
            rfc3339(Instant(edges[i + 1])),
            line.place.node,
            line.model or UNKNOWN,
            *(_number(story[i], gpu_seconds) for story in (line.capacity, line.allocated, line.idle, line.stranded)),
            line.place.resource,
        )
        for i in range(len(edges) - 1)
        for line in found.lines
    ]
    sums = (f"{each}-GPU-Seconds" for each in ("Capacity", "Allocated", "Idle", "Stranded"))
    return _table(("Start", "End", "Node", "Model", *sums), rows, several, ("Resource",))


def held_text(holders: Sequence[Holder], output: str | None, *, several: bool, prices: bool) -> str:
    """Who holds and does not use; who is not measured says so."""
    from bayplan.cli.cpu.machine_words import amount
    from bayplan.cli.ledger.printing import NO_DATA, UNKNOWN, plain, time_text
    from bayplan.cli.printers import document, render
    from bayplan.ledger.questions.amounts import gpu_hours, gpus

    if output in ("json", "yaml"):
        return document({"kind": "List", "items": plain(list(holders))}, output)
    if not holders:
        return ""

    def money(each: Holder) -> str:
        return NO_DATA if each.wasted is None else UNKNOWN if each.cost is None else str(each.cost)

    rows = [
        (
            each.cluster,
            each.namespace,
            each.name,
            each.user,
            each.model or UNKNOWN,
            gpus(each.gpus),
            gpus(each.unused),
            gpus(each.unmeasured),
            NO_DATA if each.utilisation is None else f"{each.utilisation:.1%}",
            time_text(each.since, NO_DATA),
            NO_DATA if each.wasted is None else gpu_hours(each.wasted),
            *([money(each)] if prices else []),
            each.node,
            NO_DATA if each.memory is None else amount(each.memory),
        )
        for each in holders
    ]
    heads = ("Namespace", "Pod", "User", "Model", "Held", "Unused", "No-Data", "Utilisation", "Since", "GPU-Hours")
    return render(_table((*heads, *(["Cost"] if prices else [])), rows, several, ("Node", "Memory-Used")), output)
