"""From the first signal to the last line: how a process starts its parts and closes them in reverse order.

    async def main(service: Service) -> None:
        store = await open_store()
        service.on_close("store", store.close)
        service.start("reflector", reflect(store))
        await service.stopped()

    sys.exit(run("ledger", settings, main))

On SIGTERM, on Ctrl-C or when the terminal goes (SIGHUP): `stopping` is true at once and /readyz answers no; `stopped()`
returns, so the body can end; then the parts are closed, the youngest first (a task is cancelled and awaited, a closer
is called), all within `shutdown.grace`, of which the body may use half. A second Ctrl-C ends the process at once. A
task that fails stops the service, and its error is raised. Exit code: 0, after Ctrl-C 130, and 1 when the grace is over
and something still holds on. What has an end of its own (`finite`) was cut short by any of these signals, and says so:
143 after SIGTERM, 129 after SIGHUP.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

import msgspec

from bayplan.model.clock import SECOND, Clock, SystemClock
from bayplan.model.errors import PermanentError
from bayplan.service.health import Health
from bayplan.service.logging import LOGS, get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from types import FrameType, TracebackType

    from bayplan.service.settings import Settings

log = get_logger(__name__)


def exit_code_of(number: int) -> int:
    """What a shell reports of a process that a signal ended."""
    return 128 + number


INTERRUPTED = exit_code_of(signal.SIGINT)


def asked_to_stop() -> list[signal.Signals]:
    """The signals that mean: end well. A hangup that was to be ignored (nohup) still is."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, signal.SIGINT, *hangup]


class StopTimedOut(PermanentError):
    """Something did not close within `shutdown.grace`."""

    code = "BP-S003"


class _Part(msgspec.Struct, frozen=True):
    name: str
    close: Callable[[], Awaitable[None]]


class Service:
    """A process with parts. `endpoint=False` leaves the health endpoint out; `finite` has an end of its own."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        clock: Clock | None = None,
        endpoint: bool = True,
        finite: bool = False,
    ) -> None:
        self.name = name
        self.settings = settings
        self.clock = clock or SystemClock()
        self.health = Health()
        self.url = ""
        self.stopping = False
        self.exit_code = 0
        self._endpoint = endpoint
        self._finite = finite
        self._stop = asyncio.Event()
        self._parts: list[_Part] = []
        self._errors: list[BaseException] = []
        self._overdue: list[str] = []
        self._previous: dict[signal.Signals, Any] = {}

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._body = asyncio.current_task()
        LOGS.configure(self.settings.log, self.clock)
        if self._endpoint:
            self.url = await self.health.serve(self.settings.health.bind, self.settings.health.port)
            self.on_close("health endpoint", self.health.close)
        if threading.current_thread() is threading.main_thread():
            # signal.signal, not the loop's own: it is heard even while the loop is held up by a long computation.
            self._previous = {each: signal.signal(each, self._on_signal) for each in asked_to_stop()}
        self.health.set_ready()
        log.info("started", service=self.name)
        return self

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` until it ends or the service stops. If it fails, the service stops with its error."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)

        async def cancel() -> None:
            task.cancel()
            await asyncio.wait([task])

        self.on_close(name, cancel)
        return task

    def on_close(self, name: str, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` at the end, before whatever was registered earlier."""
        self._parts.append(_Part(name, close))

    async def stopped(self) -> None:
        """Return once the service is asked to stop."""
        await self._stop.wait()

    def stop(self, reason: str) -> None:
        """Ask the service to stop. A second call changes nothing."""
        self.stopping = True
        if self._stop.is_set():
            return
        self.health.set_not_ready(f"shutting down: {reason}")
        log.info("stopping", service=self.name, reason=reason)
        grace = self.settings.shutdown.grace
        self._deadline = self.clock.now() + grace.micros
        self._timer = self._loop.call_later(grace.seconds / 2, self._press, "the body")
        self._stop.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("failed", part=task.get_name(), exc=error)
            self._errors.append(error)
            self.stop(f"{task.get_name()} failed")

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        # Between any two instructions of the main thread: nothing here may block, log or wait.
        if number == signal.SIGINT and self.stopping:
            cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a live display may have hidden it
            os.write(2, cursor + b"interrupted again: ended at once\n")
            os._exit(INTERRUPTED)
        if number == signal.SIGINT or self._finite:
            self.exit_code = exit_code_of(number)
        self.stopping = True
        self._loop.call_soon_threadsafe(self.stop, signal.Signals(number).name)

    def _press(self, what: str = "") -> None:
        """Time is up for the body, or for the part that is being closed."""
        assert self._body is not None
        self._overdue.append(what or self._parts[-1].name)
        self._body.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop("failed" if error else "done")
        self._timer.cancel()
        self._timer = self._loop.call_later(max(self._deadline - self.clock.now(), 0) / SECOND, self._press)
        try:
            if self._overdue:
                self._forgive()
            await self._close_parts()
        finally:
            self._timer.cancel()
            for number, handler in self._previous.items():
                signal.signal(number, handler)
        if self._overdue:
            grace = self.settings.shutdown.grace
            raise StopTimedOut(
                f"{self.name}: {', '.join(self._overdue)} did not end within the grace of {grace}",
                hint="raise shutdown.grace, or find what holds it up with BAYPLAN_LOG=debug",
            )
        if self._errors and error is None:
            raise self._errors[0]
        log.info("stopped", service=self.name)

    async def _close_parts(self) -> None:
        while self._parts:
            part = self._parts[-1]
            log.debug("closing", part=part.name)
            try:
                await part.close()
            except asyncio.CancelledError:
                if part.name not in self._overdue:
                    raise
                self._forgive()
                self._overdue.extend(left.name for left in reversed(self._parts[:-1]))
                return
            except Exception as failure:
                log.error("could not close", part=part.name, exc=failure)
                self._errors.append(failure)
            self._parts.pop()

    def _forgive(self) -> None:
        """The cancellation was our own, so it is no one else's business."""
        assert self._body is not None
        self._body.uncancel()


def run(
    name: str,
    settings: Settings,
    main: Callable[[Service], Awaitable[None]],
    *,
    clock: Clock | None = None,
    endpoint: bool = True,
    finite: bool = False,
) -> int:
    """Run a service to its end and return the exit code. What `main` or a task raises comes out."""

    async def whole() -> int:
        try:
            async with Service(name, settings, clock=clock, endpoint=endpoint, finite=finite) as service:
                await main(service)
        except StopTimedOut as late:
            # asyncio.run would wait for what ignores its cancellation, without end. The grace is over: so are we.
            log.error(late.message, hint=late.hint)
            sys.stdout.flush()
            os._exit(1)
        return service.exit_code

    return asyncio.run(whole())
