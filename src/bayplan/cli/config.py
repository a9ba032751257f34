"""`bayplan config`: what the settings are, where each comes from, and what can be set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import Invocation, output_option

if TYPE_CHECKING:
    from bayplan.service.sources import Resolved


@click.group()
def config() -> None:
    """Show the settings, their origins and their schema.

    A flag beats a BAYPLAN_* variable, that beats the file ($XDG_CONFIG_HOME/bayplan/config.yaml or --config), and
    that beats the default.
    """


@config.command()
@click.option("--show-origin", is_flag=True, help="Say where each value comes from.")
@output_option("yaml", "json")
@click.pass_obj
def view(invocation: Invocation, show_origin: bool, output: str | None) -> None:
    """Print the settings that hold, as a settings file. Passwords are left out."""
    from bayplan.cli.printers import document

    resolved = invocation.settings()
    if output == "json":
        text = document(_shown(resolved, origins=show_origin), "json")
    elif show_origin:
        text = _with_comments(resolved)
    else:
        text = document(_shown(resolved, origins=False), "yaml")
    click.echo(text, nl=False)


def _shown(resolved: Resolved, *, origins: bool) -> dict[str, Any]:
    from bayplan.service.redaction import redact
    from bayplan.service.sources import as_plain

    shown: dict[str, Any] = redact(as_plain(resolved, origins=origins))
    return shown


@config.command()
def schema() -> None:
    """Print the JSON Schema of a settings file, for editors and checks."""
    from bayplan.cli.printers import document
    from bayplan.service.settings import json_schema

    click.echo(document(json_schema(), "json"), nl=False)


def _with_comments(resolved: Resolved) -> str:
    """YAML that can be used as a settings file, with each origin as a comment."""
    from bayplan.cli.printers import document

    lines: list[tuple[str, str]] = []
    for section, values in _shown(resolved, origins=False).items():
        lines.append((f"{section}:", ""))
        for name, value in values.items():
            lines.append((f"  {document({name: value}, 'yaml').rstrip()}", resolved.origins[f"{section}.{name}"]))
    width = max(len(line) for line, _ in lines) + 2
    return "".join(f"{line:{width}}# {origin}\n" if origin else f"{line}\n" for line, origin in lines)
