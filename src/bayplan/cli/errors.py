"""What a person sees when something goes wrong: one clear line, what to do about it, and an exit code.

| what                                   | exit |
|----------------------------------------|------|
| an error of ours, or the system's       | 1    |
| something unexpected: a bug             | 1    |
| a command line that cannot be read      | 2    |
| Ctrl-C                                  | 130  |
| the reader of our output went away      | 1, and not a word |
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.cli.invocation import Invocation

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def guarded(call: Callable[[], Any], invocation: Invocation) -> int:
    """Call, and turn whatever comes out into an exit code. A verb returns one, or None for 0."""
    try:
        return _code_of(call)
    except BrokenPipeError:
        _point_nowhere(sys.stdout.fileno())
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as fault:
        fault.show()
        return USAGE
    except click.UsageError as fault:
        command = fault.ctx.command_path if fault.ctx else "bayplan"
        _say(fault.format_message(), f"{command} --help")
        return USAGE
    except click.ClickException as fault:
        _say(fault.format_message())
        return fault.exit_code
    except Exception as error:
        return _failed(error, invocation)


def _code_of(call: Callable[[], Any]) -> int:
    try:
        code = call()
    except SystemExit as leaving:
        code = leaving.code
    sys.stdout.flush()  # here, where a reader that went away can still be dealt with
    return code if isinstance(code, int) else 0


def _failed(error: Exception, invocation: Invocation) -> int:
    from bayplan.model.errors import BayplanError

    if invocation.debug:
        import traceback

        from bayplan.service.redaction import scrub

        sys.stderr.write(scrub("".join(traceback.format_exception(error))))
    if isinstance(error, BayplanError):
        _say(error.message, error.hint)
    elif isinstance(error, OSError) and error.strerror:
        _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    else:
        _say(*_unexpected(error, invocation))
    return FAILED


def _unexpected(error: Exception, invocation: Invocation) -> tuple[str, str]:
    package = os.path.dirname(os.path.dirname(__file__))
    place = ""
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(package):  # the last line of ours says more than that of a library
            place = f" at bayplan{path.removeprefix(package)}:{trace.tb_lineno}"
        trace = trace.tb_next
    hint = "" if invocation.debug else "run it again with --debug for the traceback, and report it"
    return f"unexpected {type(error).__name__}: {error}{place}", hint


def _say(message: str, hint: str = "") -> None:
    from bayplan.service.redaction import scrub

    first, *rest = scrub(message).strip().splitlines() or [""]
    lines = [f"error: {first}", *(f"       {line}" for line in rest)]
    if hint:
        lines.append(f"hint: {hint}")
    sys.stderr.write("\n".join(lines) + "\n")


def _point_nowhere(descriptor: int) -> None:
    """So that Python's own flush at exit finds someone to write to."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
