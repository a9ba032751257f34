"""Showing a stage while it runs: in place on a terminal, in lines elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.display.lines import clock_text, happening_line, summary_line, waiting_line
from bayplan.cli.display.picture import Happening, Picture, happenings, picture
from bayplan.cli.display.slots import Slots
from bayplan.cli.display.why import Explainer
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.clock import Instant

if TYPE_CHECKING:
    from typing import TextIO

    from bayplan.service.lifecycle import Service
    from bayplan.simulate.stage import Stage

_FRAME = 0.25
_LINE = 5.0
_MOST_WAITING = 5
"""Pods that are told of at once where they begin to wait."""


class Viewer:
    """Looks at a stage, again and again; what happened before it came is no news."""

    def __init__(self, stage: Stage, scenario: str = "") -> None:
        self._stage = stage
        self._scenario = scenario
        self._slots = Slots()
        self._explainer = Explainer(stage)
        self._waiting: set[str] = set()
        self._since = stage.now
        self._told = stage.cluster.world.store.revision

    def look(self) -> Picture:
        """The present picture."""
        stage, store = self._stage, self._stage.cluster.world.store
        self._explainer.begin()
        why = self._explainer.why
        seen = picture(store.objects(NODE), store.objects(POD), stage.recent, stage.now, self._slots, why)
        return msgspec.structs.replace(
            seen,
            happenings=tuple(_in_order(*seen.happenings, *self._happened())),
            scenario=self._scenario,
            last=next(((at, f"{event}: {did}") for at, event, did in reversed(stage.happened)), None),
            coming=tuple(stage.coming()),
        )

    def _happened(self, since: Instant | None = None) -> Iterator[Happening]:
        for at, event, did in self._stage.happened:
            if since is None or at > since:
                yield Happening(at=at, warning=False, reason="Scenario", about=event, message=did, count=1)

    def news(self) -> Iterator[str]:
        """A line for each thing worth telling since the last call, then one that sums up."""
        new = [event for event in self._stage.recent if event.version > self._told]
        self._told = max((event.version for event in new), default=self._told)
        for happening in _in_order(*happenings(new), *self._happened(self._since)):
            yield happening_line(happening)
        self._since = self._stage.now
        seen = self.look()
        yield from self._newly_waiting(seen)
        yield summary_line(seen)

    def _newly_waiting(self, seen: Picture) -> Iterator[str]:
        refused = {one.pod: one for one in seen.waiting if not one.placed}
        new = [one for name, one in refused.items() if name not in self._waiting]
        self._waiting = {*refused}
        for one in new[:_MOST_WAITING]:
            yield waiting_line(one, seen.at)
        if len(new) > _MOST_WAITING:
            yield f"{clock_text(seen.at)}  Waiting  and {len(new) - _MOST_WAITING} others"


def _in_order(*told: Happening) -> list[Happening]:
    return sorted(told, key=lambda each: each.at)


async def show(
    stage: Stage, service: Service, live: asyncio.Task[None], *, title: str, talk: bool, scenario: str = ""
) -> None:
    """Show the stage until it ends or the service stops. `talk`: standard output is for data, so show on the other."""
    out = sys.stderr if talk else sys.stdout
    viewer = Viewer(stage, scenario)
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
