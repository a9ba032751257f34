"""The agent's end of the keeper: orders go out, news come in, and a keeper that dies is noticed at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Protocol, Self

import msgspec

from bayplan.agent.keeper import TOLD, Keep, Let, Told, machine_time, recover, recovered_text
from bayplan.model.clock import Clock
from bayplan.model.errors import TemporaryError
from bayplan.node.burst.holds import Hold

Hear = Callable[[Told], None]


class KeeperLostError(TemporaryError):
    """The process that writes limits ended before it was told to."""

    code = "BP-N052"


class Keeping(Protocol):
    """Whoever writes limits for the agent. What becomes of an order is heard later."""

    def hold(self, hold: Hold) -> None:
        """Give a group a limit until its time."""
        ...

    def release(self, path: str) -> None:
        """Give a group its own limit back; one that is not held stays as it is."""
        ...


class Keeper:
    """A keeper process: started on entering, and on leaving it gives everything back and ends."""

    def __init__(
        self, journal: Path, clock: Clock, hear: Hear, *, root: str = "/sys/fs/cgroup", within: str = "/"
    ) -> None:
        self._arguments = (root, within, str(journal))
        self._clock, self._hear = clock, hear

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bayplan.agent.keeper",
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()  # an order to one that still starts would wait
        told = TOLD.decode(line) if line else Told("failed", "", why="it ended before it was ready")
        if told.what == "failed":
            await self._process.wait()
            raise KeeperLostError(f"the process that writes limits cannot start: {told.why}")
        self._hear(told)
        self._listening = asyncio.create_task(self._listen(), name="keeper")
        return self

    @property
    def pid(self) -> int:
        """The keeper's process."""
        return self._process.pid

    async def lost(self) -> NoReturn:
        """Once the keeper has ended by itself: undo what it left, and raise KeeperLostError.

        Raises what `hear` raised, too: a keeper that nobody listens to is as good as lost.
        """
        await asyncio.wait([self._listening])  # not the task itself: whoever stops waiting must not stop the listening
        self._listening.result()
        code = await self._process.wait()
        root, within, journal = self._arguments
        undone = recovered_text(recover(root, within, Path(journal)))
        raise KeeperLostError(f"the process that writes limits ended with {code}: {undone or 'it had left nothing'}")

    def hold(self, hold: Hold) -> None:
        until = None if hold.until is None else machine_time() + (hold.until - self._clock.now())
        self._send(Keep(hold.path, hold.given, until))

    def release(self, path: str) -> None:
        self._send(Let(path))

    def _send(self, order: Keep | Let) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._hear(TOLD.decode(line))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await self._listening
        finally:
            await self._process.wait()
