"""`bayplan simulate exporter`: VMs on simulated nodes, shown to a Prometheus and moved by a descheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import Invocation

if TYPE_CHECKING:
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.vms import ExporterState, Node

_NODES = 5
"""Without a scenario."""


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--engine", type=click.Choice(["auto", "embedded", "lab"]), default="auto", show_default=True)
@click.option("--scenario", type=click.Path(path_type=Path), metavar="FILE", help="Nodes and VMs; docs/vms.md.")
@click.option("-n", "--namespace", default="default", show_default=True, help="Where the VMs' pods go.")
@click.option(
    "--psi", type=click.Choice(["monotone", "seed"]), default="monotone", show_default=True, help="The curve."
)
@click.pass_obj
def exporter(invocation: Invocation, port: int, engine: str, scenario: Path | None, namespace: str, psi: str) -> int:
    """Place VMs with a scheduler and export what their nodes show, on loopback.

    \b
    bayplan simulate exporter --engine embedded --scenario vms.yaml
    curl -s localhost:8000/metrics
    curl -s localhost:8000/feedback -H 'content-type: application/json' \\
      -d '{"migrations": [{"vm_id": "vm-5", "from_node": "node-1", "to_node": "node-2"}]}'

    With `auto` the scheduler is that of the cluster that kubectl would take; where there is none, the embedded one.
    """
    from bayplan.service.lifecycle import run
    from bayplan.simulate.vms import Node, read_vms

    nodes = [Node(f"node-{number}") for number in range(1, _NODES + 1)] if scenario is None else read_vms(scenario)

    async def main(service: Service) -> None:
        await _serve(service, nodes, engine, namespace, psi, port)

    return run("exporter", invocation.quiet_settings(), main, endpoint=False)


async def _serve(service: Service, nodes: list[Node], engine: str, namespace: str, psi: str, port: int) -> None:
    import asyncio

    from bayplan.simulate.vms import ExporterState, PodManager
    from bayplan.simulate.vms.pressure import CURVES

    def say(text: str) -> None:
        click.echo(text, err=True)

    pods = await asyncio.to_thread(PodManager, namespace, engine, tell=say)

    async def close() -> None:
        await asyncio.to_thread(pods.close)

    service.on_close("pods", close)
    state = ExporterState(pods, curve=CURVES[psi])
    counts = await asyncio.to_thread(state.load_scenario, nodes)
    told = ", ".join(f"{number} {what}" for what, number in counts.items())
    say(f"{len(nodes)} nodes on {pods.engine}; VMs: {told}")
    await _listen(service, state, port)
    await service.stopped()
    if state.agreement().moves:
        say(state.agreement().text())


async def _listen(service: Service, state: ExporterState, port: int) -> None:
    from bayplan.service.http import listen, new_server
    from bayplan.simulate.vms import Exporter

    listener = listen("127.0.0.1", port, what="exporter", hint="another port: --port N; 0 takes a free one")
    server = new_server(Exporter(state).app())
    serving = service.start("http", server.serve(sockets=[listener]))

    async def close() -> None:
        server.should_exit = True
        await serving

    service.on_close("exporter", close)
    click.echo(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics")
