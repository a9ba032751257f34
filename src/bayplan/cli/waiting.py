"""Waiting for objects to be gone, and the end of one's patience."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import click

from bayplan.model.errors import NotFound, TemporaryError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object

_PAUSE = 0.5


class WaitedTooLong(TemporaryError):
    """`--timeout` is over; what was begun goes on without us."""

    code = "BP-T001"


def span_seconds(_: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """A flag such as `--timeout 30s`; 0 and nothing mean no end. A bare number counts seconds."""
    if value is None:
        return None
    from bayplan.service.durations import Duration

    try:
        return Duration.parse(f"{value}s" if value.isdigit() else value).seconds or None
    except ValueError as fault:
        raise click.BadParameter(str(fault), param=parameter) from fault


@contextlib.asynccontextmanager
async def patience(seconds: float | None, what: str) -> AsyncIterator[None]:
    """Raises WaitedTooLong when the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise WaitedTooLong(f"timed out after {seconds:g}s: {what}", hint="wait longer: --timeout") from None


async def gone(session: Session, item: Object) -> None:
    """Return once an object is gone, or another has taken its name."""
    while True:
        try:
            found = await session.cluster.get(item.kind, item.name, item.namespace)
        except NotFound:
            return
        if found.uid != item.uid:
            return
        await asyncio.sleep(_PAUSE)
