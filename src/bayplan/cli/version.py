"""`bayplan version`: which bayplan this is."""

from __future__ import annotations

import click

from bayplan.cli.invocation import output_option


@click.command()
@output_option("json", "yaml")
def version(output: str | None) -> None:
    """Print the version and what it runs on."""
    from bayplan.cli.printers import document
    from bayplan.service.identity import version_info

    info = version_info()
    if output is None:
        click.echo(f"bayplan {info['version']} (Python {info['python']}, {info['platform']})")
    else:
        click.echo(document(info, output), nl=False)
