"""`bayplan ledger`: a table of subcommands, each loaded when called."""

from __future__ import annotations

import click

from bayplan.cli.main import Verb

# subcommand: (module, attribute, what help says)
SUBCOMMANDS: dict[str, tuple[str, str, str]] = {
    "doctor": ("bayplan.cli.ledger.doctor", "doctor", "Find what is wrong with a ledger, and say what cures it."),
    "get": ("bayplan.cli.ledger.get", "get", "Show pods, workloads, nodes and events, now or as they were."),
    "idle": ("bayplan.cli.ledger.idle", "idle", "Show GPUs that nobody holds, or that are held and not used."),
    "manifest": (
        "bayplan.cli.ledger.manifest",
        "manifest",
        "Print what runs a ledger in a cluster, for kubectl apply.",
    ),
    "migrate": ("bayplan.cli.ledger.run", "migrate", "Bring a database's schema up to date."),
    "run": ("bayplan.cli.ledger.run", "run", "Record a cluster until stopped."),
    "timeline": ("bayplan.cli.ledger.timeline", "timeline", "Tell what happened to a workload, in order."),
    "uninstall": ("bayplan.cli.ledger.uninstall", "uninstall", "Take away what a ledger left in a cluster."),
    "usage": ("bayplan.cli.ledger.usage", "usage", "Add up GPU-hours by namespace, user, workload, label or model."),
    "why-gone": ("bayplan.cli.ledger.why", "why_gone", "Say who made a pod go, for whom and by which rule."),
    "why-pending": ("bayplan.cli.ledger.why", "why_pending", "Say what a pod waits for, and since when."),
}


@click.group(commands={name: Verb(name, *place) for name, place in SUBCOMMANDS.items()})
def ledger() -> None:
    """The history of every GPU workload, in SQL: record it, and ask it."""
