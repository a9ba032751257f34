"""The rows of the CPU benchmark: machines as they are said to be, and the kubelet's own answers beside ours."""

from __future__ import annotations

from typing import Never

import pytest
from benchmarks.cpu_assignment import Row, agrees, available, rows, topology
from benchmarks.measure import Effort
from benchmarks.report import render

from bayplan.cluster.lab.toolchain import LabUnavailableError
from benchmarks import cpu_assignment, cpu_peer, go_peer


def test_a_machine_has_two_sockets_and_two_threads_a_core() -> None:
    machine = topology(128, 8)
    assert {len(machine.cores), len(machine.sockets), len(machine.nodes), len(machine.caches)} == {64, 2, 8}
    assert machine.cores[5] == 1 << 5 | 1 << 69
    assert machine.sockets[0] == machine.in_nodes(0b1111)


@pytest.mark.parametrize(
    ("free", "count"),
    [
        pytest.param("clean", 126, id="a core is reserved"),
        pytest.param("fragmented", 94, id="and a quarter of the CPUs is taken"),
    ],
)
def test_the_free_set(free: str, count: int) -> None:
    machine = topology(128, 2)
    assert available(machine, free).bit_count() == count
    assert available(machine, free) == available(machine, free)


def test_every_row_stands_once() -> None:
    names = [str(row) for row in rows()]
    assert len(names) == len({*names}) == 34
    assert names[0] == "packed 128cpu-2s-2numa 16 clean"


def test_without_go_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: str) -> Never:
        raise LabUnavailableError("no Go")

    monkeypatch.setattr(go_peer, "build", build)
    printed = render(cpu_assignment.run(Effort(0.001, 1)))
    assert "kubelet  " not in printed
    assert "  no figures of the kubelet: no Go\n" in printed


@pytest.mark.slow
def test_the_kubelet_chooses_as_we_do() -> None:
    try:
        with cpu_peer.started() as peer:
            for row in (*rows(), Row("packed", 512, 8, 100, "fragmented"), Row("hints", 64, 8, 20, "fragmented")):
                question = row.question()
                assert agrees(question, peer.ask(question, 1)), str(row)
    except LabUnavailableError as error:
        pytest.skip(str(error))
