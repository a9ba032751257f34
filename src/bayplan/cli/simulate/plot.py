"""`bayplan simulate plot`: pictures of a run, from the folder it was written to."""

from __future__ import annotations

from pathlib import Path

import click

from bayplan.cli.simulate.run import LOG


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to; the run's own folder if not given."
)
@click.option("--format", "formats", type=click.Choice(["svg", "png"]), multiple=True, help="Both if not given.")
def plot(folder: Path, out: Path | None, formats: tuple[str, ...]) -> None:
    """Draw what a run's log shows: placement, utilisation, fragmentation, pending pods, wishes followed.

    \b
    bayplan simulate run week.yaml --out week
    bayplan simulate plot week
    """
    from bayplan.simulate.eventlog import EventLogError, read
    from bayplan.simulate.plots import FORMATS, draw, figures

    log = folder / LOG if folder.is_dir() else folder
    if not log.is_file():
        raise EventLogError(f"{log}: no log of a run is there", hint="bayplan simulate run FILE --out DIR writes one")
    pictures = figures(read(log))
    if not pictures:
        raise EventLogError(f"{log}: nothing to draw: in this run no pod came and nobody looked")
    for path in draw(pictures, out or log.parent, formats or FORMATS):
        click.echo(path)
