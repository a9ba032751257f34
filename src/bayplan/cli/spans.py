"""A span of time on the command line: `--for 10s`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bayplan.service.durations import Duration


def span(_: click.Context, __: click.Parameter, value: str | None) -> Duration | None:
    """The callback of an option that takes some time, more than none."""
    from bayplan.service.durations import Duration

    if value is None:
        return None
    try:
        found = Duration.parse(value)
    except ValueError as fault:
        raise click.BadParameter(str(fault)) from fault
    if not found.micros:
        raise click.BadParameter(f'expected some time; got "{value}"')
    return found
