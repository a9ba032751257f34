"""The frame of the command line: verbs, errors, exit codes, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

import bayplan
from bayplan.cli import main as frame
from bayplan.cli.errors import guarded
from bayplan.cli.invocation import Invocation
from bayplan.cli.main import VERBS, main
from bayplan.model.errors import TemporaryError

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("BAYPLAN_", "_BAYPLAN"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["-h"]])
def test_version_and_help_are_answers(capsys: Capture, arguments: list[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert ("bayplan" in out, err) == (True, "")


def test_help_names_every_verb(capsys: Capture) -> None:
    main(["--help"])
    out = capsys.readouterr().out
    for verb, (_, _, short) in VERBS.items():
        assert f"  {verb} " in out
        assert short in out


def test_version_and_help_import_no_verb_and_nothing_slow() -> None:
    program = (
        "import sys; from bayplan.cli.main import main; main(sys.argv[1:]);"
        "print(sorted(m for m in sys.modules if m.startswith('bayplan.')), file=sys.stderr);"
        "print({'msgspec', 'yaml', 'asyncio', 'rich', 'logging'} & set(sys.modules), file=sys.stderr)"
    )
    for flag in ("--version", "--help"):
        ran = subprocess.run([sys.executable, "-c", program, flag], capture_output=True, text=True, check=True)
        ours, slow = ran.stderr.splitlines()
        assert ours == str([f"bayplan.cli{m}" for m in ("", ".errors", ".invocation", ".main")])
        assert slow == "set()"


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        pytest.param(
            ["confg"], "No such command 'confg'. Did you mean 'config'?", "bayplan --help", id="a misspelt verb"
        ),
        pytest.param(
            ["config", "view", "--nope"], "No such option '--nope'.", "bayplan config view --help", id="a flag"
        ),
        pytest.param(
            ["config", "view", "--set", "port"],
            "Invalid value for '--set': expected section.key=value; got \"port\"",
            "bayplan config view --help",
            id="a value",
        ),
    ],
)
def test_a_command_line_that_cannot_be_read_is_code_two(
    capsys: Capture, arguments: list[str], error: str, hint: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", f"error: {error}\nhint: {hint}\n")


@pytest.mark.parametrize("arguments", [[], ["config"]])
def test_no_verb_shows_the_help_and_is_code_two(capsys: Capture, arguments: list[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith("Usage: bayplan")) == ("", True)


def broken() -> dict[str, str]:
    raise KeyError("version")


def raising(error: BaseException) -> Callable[[], Any]:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(
            TemporaryError("default/web: gone", hint="list again"),
            1,
            "error: default/web: gone\nhint: list again\n",
            id="an error of ours is its message and its hint",
        ),
        pytest.param(TemporaryError("a\nb"), 1, "error: a\n       b\n", id="more lines are indented"),
        pytest.param(
            TemporaryError("postgresql://ann:hunter2@db"), 1, "error: postgresql://ann:[redacted]@db\n", id="no secrets"
        ),
        pytest.param(
            FileNotFoundError(2, "No such file or directory", "week.yaml"),
            1,
            "error: week.yaml: No such file or directory\n",
            id="a file is named",
        ),
        pytest.param(
            OSError(28, "No space left on device"), 1, "error: No space left on device\n", id="the disk is full"
        ),
        pytest.param(click.ClickException("no"), 1, "error: no\n", id="click's own errors look alike"),
        pytest.param(KeyboardInterrupt(), 130, "", id="an interrupt needs no words"),
        pytest.param(click.Abort(), 130, "", id="an interrupt inside click is one too"),
    ],
)
def test_what_a_person_sees_of_an_error(capsys: Capture, error: BaseException, code: int, said: str) -> None:
    assert guarded(raising(error), Invocation()) == code
    assert capsys.readouterr() == ("", said)


def test_a_bug_is_one_line_that_says_where_to_look(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.service.identity.version_info", broken)
    assert main(["version"]) == 1
    first, hint = capsys.readouterr().err.splitlines()
    assert first.startswith("error: unexpected KeyError: 'version' at bayplan/cli/version.py:")
    assert hint == "hint: run it again with --debug for the traceback, and report it"


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        pytest.param(["version", "--debug"], "", id="by flag after the verb"),
        pytest.param(["--debug", "version"], "", id="by flag before the verb"),
        pytest.param(["version"], "debug", id="by variable"),
    ],
)
def test_a_traceback_is_shown_when_asked_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], variable: str
) -> None:
    monkeypatch.setenv("BAYPLAN_LOG", variable)
    monkeypatch.setattr("bayplan.service.identity.version_info", broken)
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert "hint" not in err


@pytest.mark.parametrize("end", [lambda: 1, lambda: sys.exit(1)], ids=["by return", "by sys.exit"])
def test_a_verb_says_its_exit_code(monkeypatch: pytest.MonkeyPatch, end: Callable[[], Any]) -> None:
    command = click.Command("differ", callback=end)
    monkeypatch.setattr(frame, "_load", lambda *_: command)
    assert main(["version"]) == 1


def test_a_reader_that_went_away_is_no_matter() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "bayplan", "config", "schema"]
    ran = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_python_runs_the_package() -> None:
    ran = subprocess.run([sys.executable, "-m", "bayplan", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"bayplan {bayplan.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(capsys: Capture, shell: str) -> None:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert ("_BAYPLAN_COMPLETE" in out, err) == (True, "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(
            "bayplan co", ["plain,completion", "plain,config", "plain,conformance", "plain,cordon"], id="a verb"
        ),
        pytest.param("bayplan config v", ["plain,view"], id="a verb's verbs"),
        pytest.param("bayplan --debug config view --sh", ["plain,--show-origin"], id="flags"),
        pytest.param("bayplan completion z", ["plain,zsh"], id="choices"),
    ],
)
def test_the_shell_is_told_what_may_come_next(words: str, offered: list[str]) -> None:
    env = {
        **os.environ,
        "_BAYPLAN_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    ran = subprocess.run([sys.executable, "-m", "bayplan"], env=env, capture_output=True, text=True, check=False)
    assert (ran.stdout.split(), ran.stderr) == (offered, "")
