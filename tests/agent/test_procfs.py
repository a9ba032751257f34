"""What /proc tells, from files and from the machine itself."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from bayplan.agent.names import ContainerName, container_names
from bayplan.agent.procfs import Proc


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    for process, thread, state, waited in ((10, 10, "S", 5), (10, 11, "R", 7), (20, 20, "R", 11)):
        task = tmp_path / str(process) / "task" / str(thread)
        task.mkdir(parents=True)
        (task / "schedstat").write_text(f"100 {waited} 3\n")
        (task / "stat").write_text(f"{thread} (a) R (b) {state} 1 2 3\n")
    (tmp_path / "stat").write_text("cpu  10 0 10 300 100 0 0\ncpu0 1 2 3 4\n")
    return Proc(tmp_path)


def test_every_thread_is_asked_and_those_gone_are_left_out(proc: Proc) -> None:
    assert proc.waited([10, 20, 30], 10) == {10: 5, 11: 7, 20: 11}
    assert proc.waited([], 0) == {}


def test_too_many_threads_are_not_asked(proc: Proc) -> None:
    assert proc.waited([10, 20], 2) is None


def test_a_name_with_parentheses_does_not_hide_the_state(proc: Proc) -> None:
    assert proc.states([10, 20]) == {10: "S", 11: "R", 20: "R"}


def test_idle_time_is_idle_and_waiting_for_disks(proc: Proc) -> None:
    assert proc.idle_us() == 400 * 1_000_000 // os.sysconf("SC_CLK_TCK")


def test_without_pressure_files_there_is_no_pressure(proc: Proc) -> None:
    assert proc.pressure() is None


def test_pressure_is_read_as_the_kernel_writes_it(proc: Proc) -> None:
    (proc.root / "pressure").mkdir()
    (proc.root / "pressure" / "cpu").write_text(
        "some avg10=1.88 avg60=1.38 avg300=7.50 total=7432277154\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
    )
    found = proc.pressure()
    assert found is not None
    assert (found.some_avg10, found.some_total_us, found.full_total_us) == (1.88, 7432277154, 3)


def test_this_very_process_is_running() -> None:
    states = Proc().states([os.getpid()])
    assert states[threading.get_native_id()] == "R"


def test_containers_are_named_by_their_logs(tmp_path: Path) -> None:
    identity = "ab" * 32
    (tmp_path / f"web-1_shop_front-end-{identity}.log").touch()
    (tmp_path / "notes.txt").touch()
    assert container_names(tmp_path) == {identity: ContainerName("shop", "web-1", "front-end")}
    assert container_names(tmp_path / "none") == {}
