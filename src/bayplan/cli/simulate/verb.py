"""`bayplan simulate`: a table of subcommands, each loaded when called."""

from __future__ import annotations

import click

from bayplan.cli.main import Verb

# subcommand: (module, attribute, what help says)
SUBCOMMANDS: dict[str, tuple[str, str, str]] = {
    "capacity": ("bayplan.cli.simulate.capacity", "capacity", "Say what else fits, and what more would need."),
    "compare": ("bayplan.cli.simulate.compare", "compare", "Run a scenario under several policies; say what differs."),
    "exporter": ("bayplan.cli.simulate.exporter", "exporter", "Place VMs and export what their nodes show."),
    "openb": ("bayplan.cli.simulate.openb", "openb", "Place the pods of an openb trace by policies, and compare them."),
    "plot": ("bayplan.cli.simulate.plot", "plot", "Draw a run: placement, utilisation, fragmentation, pending."),
    "record": ("bayplan.cli.simulate.record", "record", "Record what happens on a cluster, to be replayed."),
    "replay": ("bayplan.cli.simulate.replay", "replay", "Replay a recording or a trace under another policy."),
    "run": ("bayplan.cli.simulate.run", "run", "Run a scenario file; write a log of it and tell what came of it."),
    "validate": ("bayplan.cli.simulate.validate", "validate", "Check scenario files; tell every fault."),
}


@click.group(commands={name: Verb(name, *place) for name, place in SUBCOMMANDS.items()})
def simulate() -> None:
    """Rehearse on a cluster that is not there: scenarios, traces, policies compared."""
