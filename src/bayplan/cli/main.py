"""The command `bayplan`: a table of verbs, each loaded when called, and the flags that every verb takes.

`bayplan --version`, `--help` and completion of a verb's name import click and nothing of ours: people feel start-up.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import click

from bayplan import __version__
from bayplan.cli.errors import guarded
from bayplan.cli.invocation import GLOBAL_FLAGS, Invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

# verb: (module, attribute, what help says)
VERBS: dict[str, tuple[str, str, str]] = {
    "agent": ("bayplan.cli.agent", "agent", "Run the process on a node: watch throttling, advise, enforce."),
    "apply": ("bayplan.cli.apply", "apply", "Create or change objects from files, or show what would change."),
    "completion": ("bayplan.cli.completion", "completion", "Print the completion script of a shell."),
    "config": ("bayplan.cli.config", "config", "Show the settings, their origins and their schema."),
    "conformance": ("bayplan.cli.conformance", "conformance", "Run recorded answers of upstream against our cores."),
    "cordon": ("bayplan.cli.cordon", "cordon", "Keep new pods off a node."),
    "cpu": ("bayplan.cli.cpu.verb", "cpu", "Draw, plan and explain CPUs; find throttling; burst."),
    "delete": ("bayplan.cli.delete", "delete", "Delete objects by name, label or file."),
    "describe": ("bayplan.cli.describe.verb", "describe", "Tell all about objects, with their events."),
    "drain": ("bayplan.cli.drain", "drain", "Empty a node, honouring disruption budgets."),
    "events": ("bayplan.cli.events", "events", "Show what happened lately."),
    "explain": ("bayplan.cli.explain", "explain", "Say why a pod is where it is, or what would place it."),
    "get": ("bayplan.cli.get", "get", "Show objects as kubectl does."),
    "lab": ("bayplan.cli.lab", "lab", "Run a real control plane on this machine."),
    "ledger": ("bayplan.cli.ledger.verb", "ledger", "Record the history of GPU workloads, and ask it."),
    "logs": ("bayplan.cli.logs", "logs", "Print what containers wrote."),
    "rollout": ("bayplan.cli.rollout", "rollout", "Follow, undo, restart, pause and resume rollouts."),
    "scale": ("bayplan.cli.scale", "scale", "Set how many replicas a workload has."),
    "simulate": ("bayplan.cli.simulate.verb", "simulate", "Rehearse on a cluster that is not there; compare policies."),
    "top": ("bayplan.cli.top", "top", "Show what pods and nodes use."),
    "twin": ("bayplan.cli.twin", "twin", "Copy a cluster to try things on; it is only read."),
    "uncordon": ("bayplan.cli.cordon", "uncordon", "Let new pods onto a node again."),
    "up": ("bayplan.cli.up", "up", "Run a cluster with load on this machine, on nothing but Python."),
    "version": ("bayplan.cli.version", "version", "Print the version and what it runs on."),
}


class Verb(click.Command):
    """Stands for a command that is imported when it is called; help and suggestions do without it."""

    def __init__(self, name: str, module: str, attribute: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._place = module, attribute

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        return _load(*self._place).make_context(info_name, args, parent, **extra)


@functools.cache
def _load(module: str, attribute: str) -> click.Command:
    command: click.Command = getattr(importlib.import_module(module), attribute)
    _take_global_flags(command)
    return command


def _take_global_flags(command: click.Command) -> None:
    """As with kubectl, `bayplan config view --debug` means `bayplan --debug config view`."""
    command.params.extend(click.Option(names, **{**how, "hidden": True}) for names, how in GLOBAL_FLAGS)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            _take_global_flags(child)


@click.group(
    params=[click.Option(names, **how) for names, how in GLOBAL_FLAGS],
    commands={name: Verb(name, *place) for name, place in VERBS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from flags, BAYPLAN_* variables and a file: see `bayplan config view --show-origin`.",
)
@click.version_option(__version__, message="bayplan %(version)s")
def cli() -> None:
    """Compute management for Kubernetes: who holds every GPU and CPU, why a pod is where it is, what would fit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    invocation = Invocation()

    def call() -> Any:
        return cli.main(arguments, prog_name="bayplan", standalone_mode=False, obj=invocation)

    return guarded(call, invocation)
