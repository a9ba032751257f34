"""`bayplan up`: a cluster with load on this machine, and the picture of it.

Virtual time first (all of it with `--virtual`, the warm-up otherwise), then real time at some speed. Whatever ends it,
the end is the same: a summary, or with -o the state of the whole cluster.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import Invocation, output_option
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.cluster.embedded.kubelet.behaviour import Defaults
    from bayplan.ledger.following import Following
    from bayplan.model.clock import Instant
    from bayplan.scheduling.configuration import SchedulerConfiguration
    from bayplan.service.durations import Duration
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.scenario import Scenario
    from bayplan.simulate.stage import Stage

_FOR_EVER = 10 * 365 * 86_400 * 1_000_000
_SLICE = 600 * 1_000_000


class _Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    name: str
    """Of the scenario."""
    seed: int
    speed: float
    lasts: Duration | None
    virtual: Duration | None
    output: str | None
    port: int
    kubeconfig_out: Path | None
    startup_delay: Duration | None
    scheduler: SchedulerConfiguration | None
    ledger: Path | None = None
    nodes: list[dict[str, Any]] = []
    """The nodes of a bare cluster."""


@click.command()
@click.option("--nodes", type=click.IntRange(0, 5000), metavar="N", help="Number of nodes; the load grows with it.")
@click.option("--empty", is_flag=True, help="No load: a bare cluster to try things on, in true real time.")
@click.option(
    "--node-shape", "shape", type=click.Path(path_type=Path), metavar="FILE", help="With --empty: a Node manifest."
)
@click.option("--machine", metavar="NAME|FILE", help="With --empty: the machine that every node is; docs/up.md.")
@click.option(
    "--kubelet-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --machine: a KubeletConfiguration, with the policies of the CPU, memory and topology managers.",
)
@click.option("--startup-delay", callback=span, metavar="SPAN", help="How long a pod takes to run once it is placed.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where the API listens; 0 takes a free port.")
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write the kubeconfig."
)
@click.option("--scenario", "file", metavar="FILE", help="Another load: a file, or a name that ships; docs/up.md.")
@click.option(
    "--scheduler-config", type=click.Path(path_type=Path), metavar="FILE", help="A KubeSchedulerConfiguration."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same load.")
@click.option("--speed", type=click.FloatRange(0.01, 3600), help="1 is true real time.  [default: 60; 1 with --empty]")
@click.option("--for", "lasts", callback=span, metavar="SPAN", help="End after that time of yours, such as 30s.")
@click.option("--virtual", callback=span, metavar="SPAN", help="Run that time of the cluster at once: 24h.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record its history into an SQLite ledger."
)
@output_option("json", "yaml")
@click.pass_obj
def up(
    invocation: Invocation,
    nodes: int | None,
    empty: bool,
    shape: Path | None,
    machine: str | None,
    kubelet_config: Path | None,
    startup_delay: Duration | None,
    port: int,
    kubeconfig_out: Path | None,
    file: str | None,
    scheduler_config: Path | None,
    seed: int,
    speed: float | None,
    lasts: Duration | None,
    virtual: Duration | None,
    ledger: Path | None,
    output: str | None,
) -> int:
    """Run a cluster with load on this machine, on nothing but Python, and show it.

    Teams train, serve, explore and fail on a dozen nodes of eight GPUs. Ctrl-C ends it with a summary. While it runs it
    is a Kubernetes API on loopback: the kubeconfig it writes is for kubectl and for every other bayplan command.

    \b
    bayplan up                                   watch it, a minute a second
    bayplan up --for 30s                         half a minute of it, then the summary
    bayplan up --virtual 24h --seed 7 -o json    a whole day at once; then everything in the cluster
    bayplan up --virtual 24h --ledger day.db     then ask it: bayplan ledger usage --database sqlite:///day.db
    bayplan up --empty --nodes 5                 a bare cluster to try things on
    bayplan up --empty --machine dgx-h100 --kubelet-config kubelet.yaml      nodes that hand out CPUs one by one
    """
    if empty and (file is not None or virtual is not None):
        raise click.UsageError("--empty is without load: expected no --scenario and no --virtual")
    if not empty and (any((shape, machine, kubelet_config)) or nodes == 0):
        raise click.UsageError("--node-shape, --machine and --nodes 0 are for a bare cluster: add --empty")
    if lasts is not None and virtual is not None:
        raise click.UsageError("--for is about your time and --virtual about the cluster's: expected one of them")
    from bayplan.cli.simulate.run import scenario_of
    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.service.lifecycle import run
    from bayplan.simulate.bare import NOBODY, nodes_of
    from bayplan.simulate.scenario import scaled
    from bayplan.simulate.scenario_file import SHIPPED

    settings = invocation.quiet_settings()
    name, scenario = ("", NOBODY) if empty else scenario_of(file or SHIPPED)
    if nodes is not None and not empty:
        scenario = scaled(scenario, nodes)
    wish = _Wish(
        name=name,
        seed=seed,
        speed=speed or (1 if empty else 60),
        lasts=lasts,
        virtual=virtual,
        output=output,
        port=port,
        kubeconfig_out=kubeconfig_out,
        ledger=ledger,
        startup_delay=startup_delay,
        scheduler=None if scheduler_config is None else load_configuration(scheduler_config),
        nodes=nodes_of(3 if nodes is None else nodes, _shape(shape, machine, kubelet_config)) if empty else [],
    )

    async def main(service: Service) -> None:
        if virtual is not None:
            await _virtually(service, scenario, wish, virtual)
        else:
            await _live(service, scenario, wish)

    return run("up", settings, main, endpoint=False)


def _shape(shape: Path | None, machine: str | None, kubelet_config: Path | None) -> dict[str, Any] | None:
    """What the nodes of a bare cluster look like; None for the usual."""
    if shape is not None and machine is not None:
        raise click.UsageError("--node-shape and --machine both say what a node has: expected one of them")
    if kubelet_config is not None and machine is None:
        raise click.UsageError("--kubelet-config is for nodes that have a machine: add --machine")
    if machine is not None:
        from bayplan.cli.machine_nodes import machine_shape

        return machine_shape(machine, kubelet_config)
    from bayplan.simulate.bare import read_shape

    return None if shape is None else read_shape(shape)


async def _virtually(service: Service, scenario: Scenario, wish: _Wish, lasts: Duration) -> None:
    from bayplan.model.clock import Instant, VirtualClock

    start = VirtualClock().now()
    stage = _stage(scenario, wish, start)
    async with _recorded(stage, wish) as following:
        with _progress("simulating", start, lasts.micros) as reached:
            await _rehearse(service, stage, Instant(start + lasts.micros), reached, following)
    _finish(stage, wish)


async def _live(service: Service, scenario: Scenario, wish: _Wish) -> None:
    from bayplan.cli.display.show import show
    from bayplan.cluster.served.serve import serve
    from bayplan.model.clock import SECOND, Instant, ScaledClock

    warm = scenario.warm_up.micros
    start = Instant((service.clock.now() - warm) // SECOND * SECOND)
    stage = _stage(scenario, wish, start)
    async with _recorded(stage, wish) as following:
        with _progress("preparing the day", start, warm) as reached:
            await _rehearse(service, stage, Instant(start + warm), reached, following)
        if not service.stopping:
            recording = None if following is None else service.start("ledger", following.run())
            stage.begin_account()
            lasts = _FOR_EVER if wish.lasts is None else int(wish.lasts.micros * wish.speed)
            clock = ScaledClock(stage.now, wish.speed)
            live = service.start("cluster", stage.go_live(clock, Instant(clock.now() + lasts)))
            async with serve(stage.cluster, port=wish.port, kubeconfig_out=wish.kubeconfig_out) as served:
                click.echo(f"serving {served.url}; kubeconfig {served.kubeconfig}", err=True)
                title = f"×{wish.speed:g}  {served.url}  Ctrl-C ends"
                talk = wish.output is not None
                await show(stage, service, live, title=title, talk=talk, scenario=wish.name)
            if recording is not None:
                recording.cancel()  # the rest is stored when the block is left
    _finish(stage, wish)


async def _rehearse(
    service: Service, stage: Stage, until: Instant, reached: Callable[[Instant], None], following: Following | None
) -> None:
    """Virtual time up to an instant; with a ledger in slices, so that what is not stored yet stays little."""
    from bayplan.model.clock import Instant

    while stage.now < until and not service.stopping:
        end = until if following is None else min(Instant(stage.now + _SLICE), until)
        await stage.rehearse(end, stopping=lambda: service.stopping, reached=reached)
        if following is not None:
            await following.flush()


@contextlib.asynccontextmanager
async def _recorded(stage: Stage, wish: _Wish) -> AsyncIterator[Following | None]:
    """The ledger of a cluster, if one is wished for, complete when the block is left."""
    if wish.ledger is None:
        yield None
        return
    from bayplan.ledger.following import Following
    from bayplan.ledger.store.migrating import migrate
    from bayplan.ledger.store.sql import open_store

    url = f"sqlite:///{wish.ledger}"
    await migrate(url)
    store = await open_store(url)
    try:
        following = await Following.begin(stage.cluster, store)
        yield following
        await following.flush()
    finally:
        await store.close()


def _stage(scenario: Scenario, wish: _Wish, start: Instant) -> Stage:
    from bayplan.simulate.stage import Stage

    behaviour = _behaviour(wish)
    return Stage(scenario, seed=wish.seed, start=start, behaviour=behaviour, scheduler=wish.scheduler, nodes=wish.nodes)


def _behaviour(wish: _Wish) -> Defaults:
    """How pods behave that do not say it themselves; a delay that is asked for is exact."""
    from bayplan.cluster.embedded.kubelet.behaviour import USUAL

    if wish.startup_delay is None:
        return USUAL
    return msgspec.structs.replace(USUAL, pull=0, start=wish.startup_delay.micros, jitter=0.0)


@contextlib.contextmanager
def _progress(what: str, start: Instant, span: int) -> Iterator[Callable[[Instant], None]]:
    """Progress in minutes of the cluster's time, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from bayplan.cli.progress import progress

    minute = 60_000_000
    done = 0
    with progress(what, span // minute) as step:

        def reached(at: Instant) -> None:
            nonlocal done
            minutes = (at - start) // minute
            if minutes > done:
                step(minutes - done)
                done = minutes

        yield reached


def _finish(stage: Stage, wish: _Wish) -> None:
    """What is left at the end, on standard output."""
    if wish.output is not None:
        from bayplan.cli.printers import document

        items = [msgspec.Raw(item.raw()) for item in stage.objects()]
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
        if wish.output == "yaml":
            whole = msgspec.json.decode(msgspec.json.encode(whole))
        click.echo(document(whole, wish.output), nl=False)
        return
    from bayplan.cli.display.lines import usage_lines

    speed = "" if wish.virtual is not None else f" at {wish.speed:g} times its speed"
    for line in usage_lines(stage.tally.usage(stage.now), speed, stage.refusals, stage.events):
        click.echo(line)
