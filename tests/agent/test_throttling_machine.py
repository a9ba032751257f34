"""Throttling on this machine's own control groups, with real processes: what is measured is what the kernel wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.throttling import WORKLOADS, Workload, tried
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.agent.metrics import ThrottlingCollector
from bayplan.agent.observe import Observer
from bayplan.agent.procfs import Proc
from bayplan.model.clock import SystemClock
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree, survey
from bayplan.node.cgroup.port import Group


def _writable() -> bool:
    try:
        return survey().writable
    except BayplanError:
        return False


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _writable(), reason="control groups are not writable here"),
]


@pytest.fixture
def throttled() -> Iterator[Group]:
    with WORKLOADS[0].running() as group:
        yield group


def _kernel(group: Group) -> dict[str, float]:
    """What the files say now, read as plainly as can be."""
    seen = survey()
    cpu = Path(seen.mounts.get("cpu", seen.mounts.get("", "")) + group.path)
    stat = dict(line.split() for line in (cpu / "cpu.stat").read_text().splitlines())
    found = {"periods": float(stat["nr_periods"]), "throttled": float(stat["nr_throttled"])}
    if seen.version == 1:
        usage = Path(seen.mounts["cpuacct"] + group.path) / "cpuacct.usage"
        return {**found, "throttled_s": int(stat["throttled_time"]) / 1e9, "usage_s": int(usage.read_text()) / 1e9}
    return {**found, "throttled_s": int(stat["throttled_usec"]) / 1e6, "usage_s": int(stat["usage_usec"]) / 1e6}


def _scraped(group: Group) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(ThrottlingCollector(Observer(find_tree(), SystemClock(), root=group.path)))
    lines = generate_latest(registry).decode().splitlines()
    return {line.split("{")[0]: float(line.rpartition(" ")[2]) for line in lines if f'id="{group.path}"' in line}


def test_metrics_equal_the_kernels_files(throttled: Group) -> None:
    """Counters grow while one reads: what is scraped lies between a reading before and one after."""
    names = {
        "periods": "container_cpu_cfs_periods_total",
        "throttled": "container_cpu_cfs_throttled_periods_total",
        "throttled_s": "container_cpu_cfs_throttled_seconds_total",
        "usage_s": "container_cpu_usage_seconds_total",
    }
    before, scraped, after = _kernel(throttled), _scraped(throttled), _kernel(throttled)
    for field, name in names.items():
        assert before[field] <= scraped[name] <= after[field], name


def test_a_frozen_group_is_scraped_to_the_last_digit(throttled: Group) -> None:
    throttled.freeze(True)
    try:
        for _ in range(100):  # until the freezer has all of it
            before, scraped, after = _kernel(throttled), _scraped(throttled), _kernel(throttled)
            if before == after:
                break
        assert before == after
        assert scraped["container_cpu_usage_seconds_total"] == pytest.approx(before["usage_s"], abs=1e-9)
        assert scraped["container_cpu_cfs_throttled_seconds_total"] == pytest.approx(before["throttled_s"], abs=1e-9)
        assert scraped["container_cpu_cfs_throttled_periods_total"] == before["throttled"]
    finally:
        throttled.freeze(False)


def test_the_run_queue_equals_schedstat(throttled: Group) -> None:
    def waited() -> float:
        total = 0
        for pid in throttled.processes():
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[1])
        return total / 1e9

    before, scraped, after = waited(), _scraped(throttled), waited()
    assert before <= scraped["bayplan_container_run_queue_seconds_total"] <= after
    assert after > 0


def test_pressure_of_the_machine_equals_its_file() -> None:
    def total() -> int | None:
        found = Proc().pressure()
        return None if found is None else found.some_total_us

    before = total()
    if before is None:
        pytest.skip("this kernel has no PSI")
    written = int(Path("/proc/pressure/cpu").read_text().split("total=")[1].split()[0])
    after = total()
    assert after is not None
    assert before <= written <= after


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.cause))
def test_the_cause_is_named_and_the_advice_ends_it(workload: Workload) -> None:
    found = tried(workload, 4.0)

    assert found.before.cause is workload.cause
    assert found.before.throttle_rate > 0.03
    assert found.after.throttle_rate < found.before.throttle_rate / 2


def test_what_was_tried_is_undone() -> None:
    workload = WORKLOADS[0]
    with workload.running() as group:
        import asyncio

        from bayplan.agent.probe import try_remedy

        asyncio.run(try_remedy(find_tree(), group.path, SystemClock(), 1_000_000))
        assert group.bandwidth() == workload.bandwidth
