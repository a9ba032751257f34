"""`bayplan cpu topology`: the drawing at several widths, the tables, the files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.cpu.drawing import Holdings, Mark, distance_lines, draw, plain, show
from bayplan.cli.cpu.machine_option import chosen_machine
from bayplan.cli.cpu.machine_words import amount, strided
from bayplan.cli.main import main
from bayplan.node.discovery import discover
from bayplan.node.machine import Device, Machine
from bayplan.node.machines import named, names, read_machine
from bayplan.node.sets import mask_of
from tests.node.random_machines import machines


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("vm-2", 80),
        ("core-i9-12900k", 80),
        ("epyc-9654-2s-nps4", 80),
        ("xeon-8480-2s-snc2", 80),
        ("dgx-a100", 120),
        ("ac922", 80),
        ("gh200", 80),
        ("epyc-7763-2s-nps4", 160),
    ],
)
def test_a_machine_drawn(name: str, width: int, snapshot: SnapshotAssertion) -> None:
    machine = named(name)
    assert plain([*draw(machine, width=width), *distance_lines(machine)]) == snapshot


def _held(machine: Machine) -> Holdings:
    """A pod on cores 2-11 with a GPU, one on 12-19, and cores 0 and 1 kept."""
    letters = {**dict.fromkeys(range(2), "r"), **dict.fromkeys(range(2, 12), "A"), **dict.fromkeys(range(12, 20), "B")}
    styles = {"r": "dim", "A": "black on cyan", "B": "black on magenta"}
    marks = {letter: Mark(letter, style) for letter, style in styles.items()}
    return Holdings(
        cpus={cpu.id: marks[letters[cpu.core]] for cpu in machine.topology.cpus if cpu.core in letters},
        devices={("nvidia.com/gpu", "gpu-0"): marks["A"]},
        legend=[(marks["A"], "vision/trainer-0"), (marks["B"], "vision/trainer-1"), (marks["r"], "reserved")],
    )


@pytest.mark.parametrize(
    ("name", "width"),
    [("epyc-9654-2s-nps4", 80), ("epyc-9654-2s-nps4", 120), ("dgx-h100", 80), ("xeon-6248-2s-alternating", 80)],
)
def test_holdings_drawn(name: str, width: int, snapshot: SnapshotAssertion) -> None:
    machine = named(name)
    assert plain(draw(machine, width=width, holdings=_held(machine))) == snapshot


@settings(max_examples=40, deadline=None)
@given(machine=machines(), width=st.integers(60, 200), with_holdings=st.booleans())
def test_every_cpu_is_drawn_once_and_no_row_is_too_wide(machine: Machine, width: int, with_holdings: bool) -> None:
    holdings = Holdings({cpu.id: Mark("A") for cpu in machine.topology.cpus}) if with_holdings else None
    cells = [piece for line in draw(machine, width=width, holdings=holdings) for piece in line]
    if with_holdings:
        assert sum(piece == Mark("A") for piece in cells) == len(machine.topology.cpus)
    else:
        assert all(len(line) <= width for line in plain(draw(machine, width=width)).splitlines())
        ids = {piece.text.strip() for piece in cells if not piece.style and not piece.text.startswith("  ")}
        assert {int(text) for text in ids if text.isdigit()} == {*machine.topology.cores}


def test_devices_that_do_not_fit_go_on_in_the_next_line() -> None:
    gpus = tuple(Device("nvidia.com/gpu", f"0000:{bus:02x}:00.0", 1) for bus in range(8))
    machine = Machine(
        "m",
        named("vm-2").topology,
        named("vm-2").nodes,
        (*gpus, Device("amd.com/gpu", "lost", healthy=False)),
        offline=4,
    )
    drawn = plain(draw(machine, width=60))
    assert all(len(line) <= 60 for line in drawn.splitlines())
    assert all(gpu.id in drawn for gpu in gpus)
    assert "on no known NUMA node  amd.com/gpu lost (unhealthy)\n" in drawn
    assert drawn.endswith("\noffline  2\n")


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param((0, 1, 2, 3, 8), "0-3,8", id="as the kernel writes them"),
        pytest.param((0, 2, 4, 6, 40, 42, 44), "0-6:2,40-44:2", id="every second one"),
        pytest.param((0, 2, 3, 4), "0,2-4", id="two are no stride"),
        pytest.param((), "", id="none"),
    ],
)
def test_lists_with_strides(cpus: tuple[int, ...], expected: str) -> None:
    assert strided(mask_of(cpus)) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0"), (1023, "1023"), (64 << 30, "64Gi"), (10445380 << 10, "9.96Gi"), (1536 << 30, "1.5Ti")],
)
def test_amounts_are_short(size: int, expected: str) -> None:
    assert amount(size) == expected


def test_the_command_draws_this_machine_without_colour_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "topology"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{discover().name}\n")
    assert "\x1b" not in out


def test_a_terminal_is_shown_colours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show([[Mark("socket 0", "bold")], [Mark("plain")]])
    assert capsys.readouterr().out == "\x1b[1msocket 0\x1b[0m\nplain\n"


def test_the_named_machines_are_listed(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["cpu", "topology", "--list", "-o", "wide"]) == 0
    assert capsys.readouterr().out == snapshot
    assert main(["cpu", "topology", "--list", "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"machine/{name}" for name in names()]


def test_the_cpus_of_a_machine_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("{layout: {coresPerSocket: 2, threadsPerCore: 2, memoryPerNode: 1Gi}, offline: 1}")
    assert main(["cpu", "topology", "--machine", str(file), "-o", "wide"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["CPU", "CORE", "SOCKET", "NODE", "L3", "SIBLINGS", "ONLINE"],
        ["0", "0", "0", "0", "0", "0,2", "yes"],
        ["1", "-", "-", "-", "-", "-", "no"],
        ["2", "0", "0", "0", "0", "0,2", "yes"],
        ["3", "3", "0", "0", "0", "3", "yes"],
    ]


@pytest.mark.parametrize("machine", [["--machine", "dgx-a100"], []], ids=["a named machine", "this machine"])
def test_the_file_that_is_written_is_the_machine(
    machine: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    meant = chosen_machine(machine[1] if machine else None)
    assert main(["cpu", "topology", *machine, "-o", "yaml"]) == 0
    file = tmp_path / "written.yaml"
    file.write_text(capsys.readouterr().out)
    assert chosen_machine(str(file)) == meant
    assert main(["cpu", "topology", *machine, "-o", "json"]) == 0
    assert read_machine(json.loads(capsys.readouterr().out), "written.json") == meant


def test_a_bad_file_is_refused_with_its_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    row = "- {ids: 0, socket: 0, node: 0}\n"
    file.write_text(f"cpus:\n{row}{row}- {{ids: 1, socket: 0, node: 1}}\nnodes:\n- id: 0\n  memory: 1Gi\n")
    assert main(["cpu", "topology", "--machine", str(file)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"error: {file}:3: cpus[1].ids: CPU 0 is listed already",
        f"       {file}:4: cpus[2].node: there is no node 1 under nodes",
        "hint: docs/machines.md has the format",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--machine", "epyc-2s"], 'no machine is named "epyc-2s"', id="a name that is none"),
        pytest.param(["--machine", "./none.yaml"], "none.yaml: No such file", id="a file that is not there"),
        pytest.param(["--list", "--machine", "vm-2"], "do not go together", id="two things at once"),
        pytest.param(["--interrupts", "x"], '"x" is neither a number nor a range', id="CPUs that are none"),
        pytest.param(["--interrupts", "8191"], "CPU 8191 is not online", id="CPUs that are not there"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cpu", "topology", *arguments]) != 0
    assert expected in capsys.readouterr().err


def test_interrupts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/proc/irq").exists():
        pytest.skip("no interrupts to be seen here")
    assert main(["cpu", "topology", "--interrupts", str(discover().topology.cpus[0].id)]) == 0
    head = ["KIND", "ID", "RUNS", "ON", "ALLOWED", "COUNT", "MOVABLE", "NAME"]
    assert capsys.readouterr().out.splitlines()[0].split() == head
