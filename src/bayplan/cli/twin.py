"""`bayplan twin`: a copy of a cluster to try things on. The cluster is read with list calls alone, never written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.invocation import Invocation
from bayplan.cli.ledger.asking import Ledger, on_ledger
from bayplan.cli.spans import span
from bayplan.cli.targets import Session, Target, on_cluster, tell

if TYPE_CHECKING:
    from bayplan.cli.ledger.asking import Session as LedgerSession
    from bayplan.service.durations import Duration
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.twin.snapshot import Snapshot

_FOR_EVER = 10 * 365 * 86_400 * 1_000_000
_FILE = click.Path(path_type=Path, dir_okay=False)


class _Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How a twin is served."""

    port: int
    kubeconfig_out: Path | None
    speed: float
    lasts: Duration | None
    scheduler_config: Path | None


def _serving_options(command: Any) -> Any:
    for option in (
        click.option("--for", "lasts", callback=span, metavar="SPAN", help="End after that time of yours: 30s."),
        click.option(
            "--speed", type=click.FloatRange(0.01, 3600), default=1.0, show_default=True, help="1: real time."
        ),
        click.option("--scheduler-config", type=_FILE, metavar="FILE", help="A KubeSchedulerConfiguration for it."),
        click.option("--kubeconfig-out", type=_FILE, metavar="FILE", help="Where to write the twin's kubeconfig."),
        click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where it listens; 0: a free port."),
    ):
        option(command)
    return command


@click.group()
def twin() -> None:
    """Copy a cluster to try things on: serve the copy to kubectl, or keep it and ask it.

    \b
    bayplan twin from --context prod                   a Kubernetes API with prod's nodes and pods, on this machine
    bayplan twin from --context prod -o prod.twin      into a file
    bayplan twin serve prod.twin                       the file as a Kubernetes API
    bayplan simulate capacity --twin prod.twin         what else fits, what would have to change
    """


@twin.command("from")
@click.option("-o", "--out", type=_FILE, metavar="FILE", help="Keep the twin in a file, and serve nothing.")
@click.option("--at", metavar="TIME", help='From the ledger, as it was then: "yesterday 14:00", "2h ago", now.')
@_serving_options
@on_ledger
@on_cluster
@click.pass_obj
def from_cluster(
    invocation: Invocation, /, target: Target, ledger: Ledger, out: Path | None, at: str | None, **flags: Any
) -> int:
    """Copy a cluster's nodes and pods, and what decisions depend on, and serve the copy until Ctrl-C.

    Placed pods stay where they are, pending ones stay pending; from then on the copy lives its own life, with the
    embedded engine's scheduler, controllers and kubelets. Nothing is ever written to the cluster, and the right to list
    is all that is needed. With --at, the ledger (--database) is asked instead of the cluster.
    """
    source = click.get_current_context().get_parameter_source("database")
    of_ledger = at is not None or source is click.core.ParameterSource.COMMANDLINE
    snapshot = ledger.run(lambda session: _from_ledger(session, ledger, at)) if of_ledger else target.run(read_twin)
    say_what_lacks(snapshot)
    if out is None:
        return _serve(invocation, snapshot, _Serving(**flags))
    from bayplan.simulate.twin.snapshot import write_snapshot

    write_snapshot(out, snapshot)
    tell(f"{out}: {described(snapshot)}")
    return 0


@twin.command("serve")
@click.argument("file", type=_FILE)
@_serving_options
@click.pass_obj
def serve_file(invocation: Invocation, /, file: Path, **flags: Any) -> int:
    """Serve a twin from its file, or a recording as it ended, as a Kubernetes API on loopback, until Ctrl-C.

    \b
    bayplan twin serve prod.twin --kubeconfig-out twin.kubeconfig
    kubectl --kubeconfig twin.kubeconfig drain node-7 --ignore-daemonsets
    """
    from bayplan.simulate.twin.snapshot import read_snapshot

    snapshot = read_snapshot(file)
    say_what_lacks(snapshot)
    return _serve(invocation, snapshot, _Serving(**flags))


async def read_twin(session: Session) -> Snapshot:
    """A twin of the cluster that a command line names. Raises Forbidden."""
    from bayplan.simulate.twin.snapshot import read_cluster

    snapshot = await read_cluster(session.cluster, session.cluster.access.server, session.now())
    return msgspec.structs.replace(snapshot, at=session.now())  # the server has told its time by now


async def _from_ledger(session: LedgerSession, ledger: Ledger, at: str | None) -> Snapshot:
    from bayplan.simulate.twin.from_ledger import read_ledger

    return await read_ledger(session.store, session.at(at), ledger.cluster, session.store.address.shown)


def say_what_lacks(snapshot: Snapshot) -> None:
    """What an answer does not consider, on standard error."""
    from bayplan.simulate.twin.kinds import unconsidered

    for note in snapshot.notes:
        tell(f"Warning: {note}")
    if snapshot.lacking and not snapshot.notes:
        tell(f"Warning: lacking the right to list {', '.join(snapshot.lacking)}")
        tell(f"Warning: not considered: {'; '.join(unconsidered(snapshot.lacking))}")


def described(snapshot: Snapshot) -> str:
    """`12 nodes, 36 pods placed, 3 pending, as of 2026-01-01T06:00:00Z`."""
    from bayplan.cluster.kinds import NODE
    from bayplan.model.clock import rfc3339

    pods = [pod for pod in snapshot.pods() if not pod.is_terminal]
    placed = sum(bool(pod.spec.node_name) for pod in pods)
    nodes = len(snapshot.of(NODE))
    return f"{nodes} nodes, {placed} pods placed, {len(pods) - placed} pending, as of {rfc3339(snapshot.at)}"


def _serve(invocation: Invocation, snapshot: Snapshot, wish: _Serving) -> int:
    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.service.lifecycle import run

    scheduler = None if wish.scheduler_config is None else load_configuration(wish.scheduler_config)

    async def main(service: Service) -> None:
        from bayplan.cli.display.show import show
        from bayplan.cluster.served.serve import serve
        from bayplan.model.clock import Instant, ScaledClock
        from bayplan.service.state import state_folder
        from bayplan.simulate.bare import NOBODY
        from bayplan.simulate.stage import Stage
        from bayplan.simulate.twin.filling import RUNS_ON, fill

        stage = Stage(NOBODY, seed=0, start=snapshot.at, behaviour=RUNS_ON, scheduler=scheduler)
        fill(stage.cluster, snapshot)
        stage.begin_account()
        clock = ScaledClock(stage.now, wish.speed)
        lasts = _FOR_EVER if wish.lasts is None else int(wish.lasts.micros * wish.speed)
        live = service.start("cluster", stage.go_live(clock, Instant(clock.now() + lasts)))
        config = wish.kubeconfig_out or state_folder() / "twin.kubeconfig"  # beside that of a `bayplan up`
        async with serve(stage.cluster, port=wish.port, kubeconfig_out=config, name="twin") as served:
            tell(f"a twin of {snapshot.source}: {described(snapshot)}")
            tell(f"serving {served.url}; kubeconfig {served.kubeconfig}")
            await show(stage, service, live, title=f"twin  {served.url}  Ctrl-C ends", talk=False)

    return run("twin", invocation.quiet_settings(), main, endpoint=False)
