"""Showing a stage while it runs: in place on a terminal, in lines elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bayplan.cli.display.lines import happening_line, summary_line
from bayplan.cli.display.picture import Picture, happenings, picture
from bayplan.cli.display.slots import Slots
from bayplan.cluster.kinds import NODE, POD

if TYPE_CHECKING:
    from typing import TextIO

    from bayplan.service.lifecycle import Service
    from bayplan.simulate.stage import Stage

_FRAME = 0.25
_LINE = 5.0


class Viewer:
    """Looks at a stage, again and again; what happened before it came is no news."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._slots = Slots()
        self._told = stage.cluster.world.store.revision

    def look(self) -> Picture:
        """The present picture."""
        store = self._stage.cluster.world.store
        return picture(store.objects(NODE), store.objects(POD), self._stage.recent, self._stage.now, self._slots)

    def news(self) -> Iterator[str]:
        """A line for each thing worth telling since the last call, then one that sums up."""
        new = [event for event in self._stage.recent if event.version > self._told]
        self._told = max((event.version for event in new), default=self._told)
        for happening in happenings(new):
            yield happening_line(happening)
        yield summary_line(self.look())


async def show(stage: Stage, service: Service, live: asyncio.Task[None], *, title: str, talk: bool) -> None:
    """Show the stage until it ends or the service stops. `talk`: standard output is for data, so show on the other."""
    out = sys.stderr if talk else sys.stdout
    viewer = Viewer(stage)
    if out.isatty() and os.environ.get("TERM") != "dumb":
        await _in_place(viewer, service, live, out, title=title)
    else:
        await _in_lines(viewer, service, live, out)


async def _in_place(viewer: Viewer, service: Service, live: asyncio.Task[None], out: TextIO, title: str) -> None:
    from rich.console import Console
    from rich.live import Live

    from bayplan.cli.display.screen import Teams, screen

    console = Console(file=out, highlight=False)
    teams = Teams()
    with Live(console=console, screen=True, auto_refresh=False) as display:
        while True:
            view = screen(viewer.look(), teams, title=title, height=console.height)
            display.update(view, refresh=True)
            if not await _goes_on(service, live, _FRAME):
                return


async def _in_lines(viewer: Viewer, service: Service, live: asyncio.Task[None], out: TextIO) -> None:
    while True:
        for line in viewer.news():
            out.write(f"{line}\n")
        out.flush()
        if not await _goes_on(service, live, _LINE):
            return


async def _goes_on(service: Service, live: asyncio.Task[None], span: float) -> bool:
    """Wait a little; false once there is no more to come."""
    stopped: asyncio.Task[Any] = asyncio.create_task(service.stopped())
    await asyncio.wait([stopped, live], timeout=span, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    return not (service.stopping or live.done())
