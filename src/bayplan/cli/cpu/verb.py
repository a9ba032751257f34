"""`bayplan cpu`: a table of subcommands, each loaded when called."""

from __future__ import annotations

import click

from bayplan.cli.main import Verb

# subcommand: (module, attribute, what help says)
SUBCOMMANDS: dict[str, tuple[str, str, str]] = {
    "burst": ("bayplan.cli.cpu.burst", "burst", "Let throttled containers burst, or show what would be done."),
    "explain": (
        "bayplan.cli.cpu.explain",
        "explain",
        "Say what blocks an allocation, or why a container is throttled.",
    ),
    "plan": ("bayplan.cli.cpu.plan", "plan", "Show which pods would get which CPUs of a machine, and why."),
    "throttling": ("bayplan.cli.cpu.throttling", "throttling", "Show containers by how much they are throttled."),
    "topology": ("bayplan.cli.cpu.topology", "topology", "Draw a machine: sockets, NUMA nodes, caches and cores."),
}


@click.group(commands={name: Verb(name, *place) for name, place in SUBCOMMANDS.items()})
def cpu() -> None:
    """CPUs of a node: its topology, who would hold which CPUs, who is throttled and what would help."""
