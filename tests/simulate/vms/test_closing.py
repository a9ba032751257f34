"""The end of a PodManager: it may come twice, and whoever calls after it is told so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from bayplan.simulate.vms import VM, Node, PodManager, VMError
from bayplan.testing import fake_cluster


def test_closing_twice_is_closing_once() -> None:
    with PodManager(backend=fake_cluster()) as pods:
        pods.close()
        pods.close()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda pods: pods.create_pod(VM("vm", 0.1, 0.1)), id="a pod"),
        pytest.param(lambda pods: pods.get_pod_node_assignment("vm"), id="a place"),
        pytest.param(lambda pods: pods.sync_pods_with_vms([]), id="a sync"),
        pytest.param(lambda pods: pods.migrate_vm_pod(VM("vm", 0.1, 0.1), "n"), id="a migration"),
        pytest.param(lambda pods: pods.ensure_nodes([Node("n")]), id="a node"),
    ],
)
def test_a_call_after_the_end_is_refused(call: Callable[[PodManager], object]) -> None:
    with PodManager(backend=fake_cluster()) as pods:
        pass
    with pytest.raises(VMError, match="this PodManager is closed"):
        call(pods)


def test_what_was_seen_can_be_read_after_the_end() -> None:
    with PodManager(backend=fake_cluster()) as pods:
        pods.ensure_nodes([Node("n")])
        pods.create_pod(VM("vm", 0.1, 0.1))
    assert (pods.engine, pods.mirror.vms(), pods.latency()) == ("embedded", ["vm"], 0.0)


def test_a_call_that_is_under_way_at_the_end_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = PodManager(backend=fake_cluster())
    waits = threading.Event()
    found: list[BaseException] = []

    async def for_ever(_: object) -> None:
        waits.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            pods.get_pod_node_assignment("vm")
        except VMError as told:
            found.append(told)

    monkeypatch.setattr(pods._placing, "decided", for_ever)
    caller = threading.Thread(target=call)
    caller.start()
    assert waits.wait(60)
    pods.close()
    caller.join(60)

    assert [str(each).splitlines()[0] for each in found] == ["this PodManager is closed"]
