"""The flag `--machine`: a machine that comes with the package, a file, or, where it is not given, this one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bayplan.node.machine import Machine

_FILES = (".yaml", ".yml", ".json")


def machine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flag; it gets a text for `chosen_machine`."""
    return click.option(
        "--machine",
        metavar="NAME|FILE|-",
        shell_complete=_complete,
        help="A named machine (topology --list), a machine file or - for standard input; by default this machine.",
    )(command)


def chosen_machine(text: str | None) -> Machine:
    """The machine that the flag means. Raises UnknownMachine, MachineError, FileError, DiscoveryError, OSError."""
    from bayplan.node.discovery import discover
    from bayplan.node.machines import named, names

    if text is None:
        return discover()
    if text == "-":
        return read_machine_text("standard input", sys.stdin.buffer.read())
    is_file = "/" in text or text.endswith(_FILES) or (text not in names() and Path(text).is_file())
    return read_machine_text(text, Path(text).read_bytes()) if is_file else named(text)


def read_machine_text(name: str, text: bytes) -> Machine:
    """A machine from a file's text; errors name its lines. Raises MachineError, FileError for what is no YAML."""
    import msgspec

    from bayplan.node.machines import MachineError, read_machine
    from bayplan.service.yaml_lines import read_yaml

    located = read_yaml(name, text)
    try:
        return read_machine(located.value, located.name)
    except MachineError as error:
        faults = [msgspec.structs.replace(fault, line=located.line(fault.path)) for fault in error.faults]
        raise MachineError(faults, located.name) from error


def _complete(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from bayplan.node.machines import names

    found = [CompletionItem(name) for name in names() if name.startswith(start)]
    return found or [CompletionItem(start, type="file")]
