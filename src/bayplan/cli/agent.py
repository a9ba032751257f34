"""`bayplan agent`: the process on a node, what it would find there, and its rules for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import Invocation, output_option

if TYPE_CHECKING:
    from bayplan.agent.bursting import Bursting
    from bayplan.agent.process import Enforcer
    from bayplan.agent.process import Mode as AgentMode
    from bayplan.agent.reserving import Reserving
    from bayplan.node.cgroup.port import Tree
    from bayplan.node.cgroup.reservations import Reservations
    from bayplan.node.cgroup.trees import FileTree
    from bayplan.service.lifecycle import Service

_MODES = ("observe", "advise", "enforce")
CGROUPS = "/sys/fs/cgroup"


@click.group()
def agent() -> None:
    """The process on a node: it watches throttling, says what would help, and does it where told to."""


def _take_listen(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    host, port = value.rpartition(":")[::2]
    if not (host and port.isdigit()):
        raise click.BadParameter(
            f'expected an address and a port such as 127.0.0.1:8081, or 0.0.0.0:8081 for all; got "{value}"'
        )
    ctx.obj.give("health.bind", host.strip("[]"), "--listen")
    ctx.obj.give("health.port", port, "--listen")


class _Run(click.Command):
    """A command that knows the kubelet's flags when they stand in the wrong place."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as unknown:
            from bayplan.node.configuration.flags import FLAGS

            if unknown.option_name.lstrip("-") in FLAGS:
                raise click.UsageError(
                    f"{unknown.option_name} is a flag of the kubelet: such stand after two dashes, as in "
                    f"bayplan agent run --mode enforce -- {unknown.option_name}=...",
                    ctx,
                ) from unknown
            raise


@agent.command("run", cls=_Run)
@click.option("--mode", type=click.Choice(_MODES), default="observe", show_default=True, help="How much it does.")
@click.option("--cgroup-root", default=CGROUPS, show_default=True, metavar="DIR", help="Where cgroups are mounted.")
@click.option("--root", default="/", show_default=True, metavar="GROUP", help="Only this group and those below it.")
@click.option(
    "--listen",
    callback=_take_listen,
    expose_value=False,
    metavar="ADDRESS:PORT",
    help="Where /metrics, /livez and /readyz are; short for health.bind and health.port.",
)
@click.option("--beside-kubelet", is_flag=True, help="With enforce: also write what the kubelet and the runtime own.")
@click.argument("reservations", nargs=-1, type=click.UNPROCESSED, metavar="[-- KUBELET-FLAGS]")
@click.pass_obj
def run(
    invocation: Invocation,
    mode: str,
    cgroup_root: str,
    root: str,
    beside_kubelet: bool,
    reservations: tuple[str, ...],
) -> int:
    """Watch the groups of this machine until stopped.

    \b
    observe   reads only: metrics and alerts at http://127.0.0.1:8081/metrics
    advise    also logs why a group is throttled, and what it would do about it
    enforce   also lets throttled groups burst; all of it is undone when the agent stops

    Reservations to keep are written as the kubelet's own flags, after two dashes:

    \b
    bayplan agent run --mode enforce --beside-kubelet -- \\
        --system-reserved=cpu=1,memory=2Gi --system-reserved-cgroup=/system.slice \\
        --enforce-node-allocatable=pods,system-reserved
    """
    from bayplan.agent.process import Mode, journal_folder, run_agent, undo_leftovers
    from bayplan.agent.reading import group_named
    from bayplan.agent.rights import check_rights
    from bayplan.node.cgroup.detect import find_tree
    from bayplan.service.http import AddressUnavailable
    from bayplan.service.lifecycle import run as run_service

    chosen = Mode(mode)
    if beside_kubelet and chosen is not Mode.ENFORCE:
        raise click.UsageError("--beside-kubelet is about writing: expected --mode enforce")
    if reservations and chosen is Mode.OBSERVE:
        raise click.UsageError("reservations are about writing: expected --mode enforce, or advise to see them")
    tree, wanted = find_tree(cgroup_root), _wanted(reservations)
    root = group_named(tree, root).path  # GroupGoneError, if there is none
    if chosen is Mode.ENFORCE:
        check_rights(cgroup_root)
    settings = invocation.settings().settings

    async def main(service: Service) -> None:
        undo_leftovers(tree, journal_folder())
        enforcers: list[Enforcer] = [_bursting(service, tree, cgroup_root, root, chosen, beside_kubelet)]
        if wanted is not None:
            enforcers.append(_reserving(tree, wanted, beside_kubelet))
        await run_agent(service, tree, chosen, root=root, enforcers=enforcers)

    try:
        return run_service("agent", settings, main)
    except AddressUnavailable as refused:
        raise AddressUnavailable(refused.message, hint="--listen ADDRESS:PORT; port 0 takes a free one") from refused


def _wanted(flags: tuple[str, ...]) -> Reservations | None:
    """The reservations that the kubelet's flags ask for. Raises NodeConfigurationError, ReservationError."""
    if not flags:
        return None
    from bayplan.agent.reserving import reservations_of
    from bayplan.node.configuration import read_configuration
    from bayplan.node.discovery.machine import discover

    return reservations_of(read_configuration(None, flags), discover())


def _reserving(tree: FileTree, wanted: Reservations, beside_kubelet: bool) -> Reserving:
    from bayplan.agent.process import journal_folder
    from bayplan.agent.reserving import Kept, Reserving
    from bayplan.service.logging import get_logger

    log = get_logger("bayplan.agent.reserving")

    def tell(kept: Kept) -> None:
        log.info("reserves" if kept.written else "would reserve", write=str(kept.write))

    return Reserving(tree, wanted, journal_folder() / "reservations.journal", tell, beside_kubelet=beside_kubelet)


def _bursting(
    service: Service, tree: Tree, cgroup_root: str, root: str, mode: AgentMode, beside_kubelet: bool
) -> Bursting:
    """The part that lets throttled groups burst; what it does, or would do, is logged, and what it does is counted."""
    from bayplan.agent.burst import BurstAgent
    from bayplan.agent.burst_metrics import BurstCollector
    from bayplan.agent.burst_modes import ShortMode
    from bayplan.agent.burst_news import BurstNews
    from bayplan.agent.bursting import Bursting
    from bayplan.agent.kubelet import owned_by_kubelet
    from bayplan.agent.process import Mode, journal_folder
    from bayplan.node.burst.short import ShortBurst
    from bayplan.service.logging import get_logger

    tell = BurstNews(get_logger("bayplan.agent.burst")).tell
    may_touch = None if beside_kubelet else lambda path: not owned_by_kubelet(path)
    watching = BurstAgent(tree, ShortMode(ShortBurst()), service.clock, tell, below=(root,), may_touch=may_touch)
    if mode is Mode.ENFORCE:
        service.health.registry.register(BurstCollector(watching))
    return Bursting(watching, service.clock, journal_folder() / "burst.journal", cgroup_root=cgroup_root)


@agent.command("rules")
@click.pass_obj
def rules(invocation: Invocation) -> None:
    """Print rules for Prometheus: the throttle rate recorded, and alerts with the thresholds of the settings."""
    from bayplan.agent.process import thresholds_of
    from bayplan.agent.rules import prometheus_rules
    from bayplan.cli.printers import document

    click.echo(document(prometheus_rules(thresholds_of(invocation.settings().settings)), "yaml"), nl=False)


@agent.command("kubelet")
@output_option("json", "yaml")
def kubelet(output: str | None) -> None:
    """Show the CPU, memory and topology policies of this machine's kubelet."""
    from bayplan.agent.kubelet import find_kubelet
    from bayplan.cli.kubelet_page import kubelet_document, kubelet_rows
    from bayplan.cli.printers import columns, document
    from bayplan.cli.targets import tell

    found = find_kubelet()
    if found is None:
        tell("No kubelet found")
    if output:
        click.echo(document(None if found is None else kubelet_document(found), output), nl=False)
    elif found is not None:
        click.echo(columns(kubelet_rows(found)), nl=False)
