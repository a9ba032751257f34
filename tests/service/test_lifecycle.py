"""Orderly shutdown: in a process of its own that gets real signals, and in this one where none is needed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator

import pytest

from bayplan.service.durations import Duration
from bayplan.service.lifecycle import Service, StopTimedOut
from bayplan.service.logging import LOGS
from bayplan.service.settings import Settings, ShutdownSettings

PROLOGUE = """
import asyncio, sys, time
from bayplan.service.durations import Duration
from bayplan.service.lifecycle import run
from bayplan.service.settings import HealthSettings, Settings, ShutdownSettings

def say(*words):
    print(*words, flush=True)

def settings(grace):
    return Settings(health=HealthSettings(port=0), shutdown=ShutdownSettings(grace=Duration.parse(grace)))
"""

ORDERLY = """
async def work(name):
    try:
        await asyncio.Event().wait()
    finally:
        say("cancelled", name)

async def close():
    say("closed store")

async def main(service):
    service.on_close("store", close)
    service.start("first", work("first"))
    service.start("second", work("second"))
    await asyncio.sleep(0)
    say(service.url)
    await service.stopped()
    say("body ends")

sys.exit(run("test", settings("20s"), main))
"""

STUBBORN = """
async def hold():
    say("closing")
    await asyncio.Event().wait()

async def main(service):
    service.on_close("database", hold)
    say(service.url)
    await service.stopped()

sys.exit(run("test", settings("10m"), main))
"""

BUSY = """
async def main(service):
    say(service.url)
    while not service.stopping:
        pass                        # the loop does not turn, yet the signal is heard
    say("partial result")

sys.exit(run("test", settings("20s"), main))
"""


DEAF = """
async def ignore():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("not me")

async def main(service):
    service.start("deaf", ignore())
    say(service.url)
    await service.stopped()

sys.exit(run("test", settings("100ms"), main))
"""


class Process:
    def __init__(self, program: str) -> None:
        code = textwrap.dedent(PROLOGUE + program)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=pipe,
            stderr=pipe,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup around the tests would hide it
        )
        assert self._process.stdout is not None
        self._stdout = self._process.stdout
        self.url = self.line()

    def line(self) -> str:
        return self._stdout.readline().rstrip()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, list[str], str]:
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out.splitlines(), err

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def started(request: pytest.FixtureRequest) -> Iterator[Process]:
    process = Process(request.param)
    assert process.url.startswith("http://127.0.0.1:")
    yield process
    process.kill()


@pytest.mark.parametrize("started", [ORDERLY], indirect=True, ids=["orderly"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 0, id="a clean end on SIGTERM is a success"),
        pytest.param(signal.SIGHUP, 0, id="a terminal that goes is no reason to leave anything behind"),
        pytest.param(signal.SIGINT, 130, id="an interrupt is told to the shell"),
    ],
)
def test_parts_close_in_reverse_order(started: Process, number: signal.Signals, code: int) -> None:
    started.signal(number)
    returned, out, err = started.end()
    assert (returned, out) == (code, ["body ends", "cancelled second", "cancelled first", "closed store"])
    assert f'"reason":"{number.name}"' in err
    assert "Traceback" not in err


@pytest.mark.parametrize("started", [STUBBORN], indirect=True, ids=["stubborn"])
def test_readiness_ends_first_and_a_second_interrupt_ends_all(started: Process) -> None:
    assert _status(f"{started.url}/readyz") == 200
    started.signal(signal.SIGINT)
    assert started.line() == "closing"
    assert _status(f"{started.url}/readyz") == 503
    assert _status(f"{started.url}/livez") == 200
    started.signal(signal.SIGTERM)  # a supervisor may repeat itself
    assert _status(f"{started.url}/livez") == 200
    started.signal(signal.SIGINT)
    code, _, err = started.end()
    assert (code, err.splitlines()[-1]) == (130, "interrupted again: ended at once")


@pytest.mark.parametrize("started", [BUSY], indirect=True, ids=["busy"])
def test_a_busy_body_hears_the_signal_and_keeps_its_partial_result(started: Process) -> None:
    started.signal(signal.SIGINT)
    code, out, _ = started.end()
    assert (code, out) == (130, ["partial result"])


@pytest.mark.parametrize("started", [DEAF], indirect=True, ids=["deaf"])
def test_what_ignores_everything_holds_nothing_up_beyond_the_grace(started: Process) -> None:
    started.signal(signal.SIGTERM)
    code, out, err = started.end()
    assert (code, out[0]) == (1, "not me")
    assert "test: deaf, health endpoint did not end within the grace of 100ms" in err


def _status(url: str) -> int:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOGS, "configure", lambda *_: None)


def service(grace: str = "20s") -> Service:
    return Service("test", Settings(shutdown=ShutdownSettings(grace=Duration.parse(grace))), endpoint=False)


Body = Callable[[Service], Awaitable[None]]


async def live(body: Body, grace: str = "10m") -> Service:
    """A service in this process, without an endpoint."""
    settings = Settings(shutdown=ShutdownSettings(grace=Duration.parse(grace)))
    async with Service("test", settings, endpoint=False) as service:
        await body(service)
    return service


async def fail() -> None:
    raise ConnectionError("gone")


async def hold() -> None:
    await asyncio.Event().wait()


class Closers:
    """Remembers who was closed."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def __call__(self, name: str) -> Callable[[], Awaitable[None]]:
        async def close() -> None:
            self.closed.append(name)

        return close


@pytest.mark.usefixtures("quiet")
async def test_a_task_that_fails_stops_the_service_with_its_error() -> None:
    closers = Closers()

    async def body(service: Service) -> None:
        service.on_close("store", closers("store"))
        service.start("reflector", fail())
        await service.stopped()

    with pytest.raises(ConnectionError, match="gone"):
        await live(body)
    assert closers.closed == ["store"]


@pytest.mark.usefixtures("quiet")
async def test_a_task_that_ends_by_itself_stops_nothing() -> None:
    async def body(service: Service) -> None:
        await service.start("once", asyncio.sleep(0))
        await asyncio.sleep(0)
        assert not service.stopping

    assert (await live(body)).exit_code == 0


@pytest.mark.usefixtures("quiet")
async def test_a_closer_that_fails_is_an_error_and_keeps_no_other_from_closing() -> None:
    closers = Closers()

    async def body(service: Service) -> None:
        service.on_close("first", closers("first"))
        service.on_close("second", fail)

    with pytest.raises(ConnectionError, match="gone"):
        await live(body)
    assert closers.closed == ["first"]


@pytest.mark.usefixtures("quiet")
async def test_the_body_s_own_error_goes_before_that_of_a_closer() -> None:
    async def body(service: Service) -> None:
        service.on_close("store", fail)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await live(body)


@pytest.mark.usefixtures("quiet")
async def test_what_does_not_close_within_the_grace_is_named() -> None:
    async def body(service: Service) -> None:
        service.on_close("first", hold)
        service.on_close("second", hold)

    with pytest.raises(StopTimedOut, match="test: second, first did not end within the grace of 1ms"):
        await live(body, grace="1ms")


@pytest.mark.usefixtures("quiet")
async def test_a_body_that_does_not_end_is_cancelled_and_the_parts_are_still_closed() -> None:
    closers = Closers()

    async def body(service: Service) -> None:
        service.on_close("store", closers("store"))
        service.stop("asked to")
        asyncio.get_running_loop().call_soon(service._press, "the body")  # half of the ten minutes is over
        await hold()

    with pytest.raises(StopTimedOut, match="test: the body did not end"):
        await live(body)
    assert closers.closed == ["store"]


@pytest.mark.usefixtures("quiet")
async def test_a_cancellation_from_outside_stays_one() -> None:
    task = asyncio.create_task(live(Service.stopped))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
