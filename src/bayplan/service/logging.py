"""One logger a room, with fields: `log.info("pod placed", pod=pod, node=node)`.

The idea: a disabled call is one comparison (designs/0002-logging.md has the measurement against the standard library
and structlog). Where fields are given in a hot loop, ask first: `if log.debugs: log.debug(...)`.

    log = get_logger(__name__)            # "bayplan.node.gpu" is the room "node.gpu"
    LOGS.configure(settings.log, clock)   # once, by the process
    LOGS.set_levels(Levels.parse(text))   # at any time

Text goes to a terminal, one JSON object a line elsewhere. What other libraries log through the standard library comes
out the same way, but only warnings unless a level names the library (`httpx2=info`). Secrets are taken out of every
line (redaction.py).
"""

from __future__ import annotations

import logging as stdlib
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.model.clock import Clock, SystemClock, rfc3339_micro
from bayplan.service.levels import DEBUG, ERROR, INFO, NAMES, TRACE, WARNING, Levels
from bayplan.service.redaction import redact, scrub

if TYPE_CHECKING:
    from typing import TextIO

    from bayplan.service.settings import LogSettings

_RESERVED = frozenset({"ts", "level", "logger", "msg"})
_COLOURS = {TRACE: "2", DEBUG: "2", INFO: "32", WARNING: "33", ERROR: "31"}
_CONTROLS = {code: f"\\x{code:02x}" for code in [*range(32), 127, *range(128, 160)]}  # a field forges no line


class Logger:
    """Says things for one room. `exc=error` adds an exception with its traceback."""

    __slots__ = ("_level", "_logs", "debugs", "name", "traces")

    def __init__(self, name: str, logs: Logs) -> None:
        self.name = name
        self._logs = logs
        self.set_level(logs.levels.of(name))

    def set_level(self, level: int) -> None:
        """Say what is at or above the level. `LOGS.set_levels` calls it for every room."""
        self._level = level
        self.traces = level <= TRACE
        self.debugs = level <= DEBUG

    def trace(self, msg: str, /, **fields: Any) -> None:
        """Every step; for finding one fault in one room."""
        if self._level <= TRACE:
            self._logs.write(TRACE, self.name, msg, fields)

    def debug(self, msg: str, /, **fields: Any) -> None:
        """What a developer wants to know."""
        if self._level <= DEBUG:
            self._logs.write(DEBUG, self.name, msg, fields)

    def info(self, msg: str, /, **fields: Any) -> None:
        """What an operator wants to know of a day without trouble."""
        if self._level <= INFO:
            self._logs.write(INFO, self.name, msg, fields)

    def warning(self, msg: str, /, **fields: Any) -> None:
        """Something is wrong and was dealt with."""
        if self._level <= WARNING:
            self._logs.write(WARNING, self.name, msg, fields)

    def error(self, msg: str, /, **fields: Any) -> None:
        """Something failed."""
        if self._level <= ERROR:
            self._logs.write(ERROR, self.name, msg, fields)


class Logs:
    """All loggers of a process, their levels, and where the lines go."""

    def __init__(self, levels: Levels | None = None) -> None:
        self.levels = self.libraries = levels or Levels()
        self._loggers: dict[str, Logger] = {}
        self._clock: Clock = SystemClock()
        self._stream: TextIO | None = None
        self._format = "auto"

    def get(self, name: str) -> Logger:
        """The logger of a room; a module gives its `__name__`."""
        room = name.removeprefix("bayplan.")
        if room not in self._loggers:
            self._loggers[room] = Logger(room, self)
        return self._loggers[room]

    def configure(self, settings: LogSettings, clock: Clock, stream: TextIO | None = None) -> None:
        """Set format, levels, clock and stream (standard error), and take over what others log."""
        self._clock, self._stream, self._format = clock, stream, settings.format
        stdlib.getLogger().handlers[:] = [_Bridge(self)]
        self.set_levels(settings.levels)

    def set_levels(self, levels: Levels) -> None:
        """Change what is logged from now on."""
        self.levels = levels
        self.libraries = Levels(max(levels.default, WARNING), levels.rooms)
        stdlib.getLogger().setLevel(self.libraries.lowest())
        for room, logger in self._loggers.items():
            logger.set_level(levels.of(room))

    def write(self, level: int, room: str, msg: str, fields: dict[str, Any]) -> None:
        """Write one line, whatever the room's level."""
        stream = self._stream or sys.stderr
        at = rfc3339_micro(self._clock.now())
        msg, fields = scrub(msg), _plain_fields(fields)
        try:
            terminal = stream.isatty()
            if self._format == "json" or (self._format == "auto" and not terminal):
                line = _json_line(at, level, room, msg, fields)
            else:
                line = _text_line(at, level, room, msg, fields, terminal and not os.environ.get("NO_COLOR"))
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):
            pass  # standard error is gone, so there is nowhere left to say so; the work goes on


def _plain_fields(fields: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, BaseException):
            plain["error" if name == "exc" else name] = scrub(f"{type(value).__name__}: {value}")
            if name == "exc" and value.__traceback__ is not None:
                plain["trace"] = _traceback(value)
        else:
            plain[f"{name}_" if name in _RESERVED else name] = redact(value, name)
    return plain


def _traceback(error: BaseException) -> str:
    import traceback  # slow to import, and needed only when something failed

    return scrub("".join(traceback.format_exception(error)).rstrip())


def _json_line(at: str, level: int, room: str, msg: str, fields: dict[str, Any]) -> str:
    head = {"ts": at, "level": NAMES[level], "logger": room, "msg": msg}
    return msgspec.json.encode(head | fields).decode() + "\n"


def _text_line(at: str, level: int, room: str, msg: str, fields: dict[str, Any], colour: bool) -> str:
    trace = fields.pop("trace", "")
    name = f"{NAMES[level].upper():7}"
    if colour:
        name = f"\x1b[{_COLOURS[level]}m{name}\x1b[0m"
    said = "".join(f" {key}={_text_value(value)}" for key, value in fields.items())
    below = "".join(f"\n    {line.translate(_CONTROLS)}" for line in trace.splitlines())
    return f"{at[:-4]}Z {name} {room}: {msg.translate(_CONTROLS)}{said}{below}\n"


def _text_value(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and value and not set(value) & set(' "='):
        return value
    return msgspec.json.encode(value).decode().translate(_CONTROLS)


class _Bridge(stdlib.Handler):
    """Passes on what other libraries log through the standard library."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: stdlib.LogRecord) -> None:
        if record.levelno < self._logs.libraries.of(record.name):
            return
        level = max((number for number in NAMES if number <= record.levelno), default=TRACE)
        fields = {"exc": record.exc_info[1]} if record.exc_info else {}
        self._logs.write(level, record.name, record.getMessage(), fields)


LOGS = Logs()
get_logger = LOGS.get
