"""The messages in the troubleshooting page: each line of a block `text` is one that the managers really say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from bayplan.agent.kubelet import may_write
from bayplan.model.errors import PermanentError
from bayplan.node.admission import NodeManagers, Remembered
from bayplan.node.checkpoint.own import Checkpoint, to_go_on_with
from bayplan.node.configuration import read_configuration
from bayplan.node.cpu.options import FULL_CORES
from bayplan.node.cpu.state import CpuState
from bayplan.node.machines import named
from bayplan.node.needs import ContainerNeed, PodNeed
from bayplan.node.policies import NodePolicies
from bayplan.node.reservations import divide
from bayplan.node.sets import parse_list
from bayplan.node.topology.manager import Admission
from tests.test_node_docs import DGX, EPYC, ROOT, asking, managers_of

TROUBLES = (ROOT / "docs/node-troubleshooting.md").read_text()
SMALL = "vm-8"
GIB = 1 << 30


def _refused(admission: Admission) -> str:
    assert admission.refusal is not None
    return admission.refusal.message


def _raised(call: Callable[[], object]) -> str:
    with pytest.raises(PermanentError) as refused:
        call()
    return refused.value.message


def _admission_messages() -> Iterator[str]:
    whole = {FULL_CORES: "true"}
    memory: dict[str, Any] = {"memory": "Static", "reserved_memory": {0: {"memory": GIB}}}
    yield _refused(managers_of(EPYC, "single-numa-node").admit(asking("a", 40)))
    yield _refused(managers_of(SMALL, "none").admit(asking("a", 7)))
    large = PodNeed("a", (ContainerNeed("app", memory={"memory": 64 * GIB}),))
    yield _refused(managers_of(SMALL, "none", **memory).admit(large))
    busy = managers_of(DGX, "none")
    busy.admit(asking("a", 2, gpus=4))
    yield _refused(busy.admit(asking("b", 2, gpus=5)))
    yield _refused(managers_of(SMALL, "none", cpu_options=whole).admit(asking("a", 3)))
    yield _refused(managers_of(SMALL, "none", cpu_options=whole).admit(asking("a", 8)))


def _start_messages() -> Iterator[str]:
    static = NodePolicies(cpu="static", reserved=2)

    def restarted(default: str, **held: str) -> Callable[[], object]:
        assignments = {"pod": {name: parse_list(cpus) for name, cpus in held.items()}} if held else {}
        known = Remembered(cpu=CpuState(parse_list(default), assignments))
        return lambda: NodeManagers(named(SMALL), static, known)

    def configured(**settings: Any) -> Callable[[], object]:
        document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **settings}
        return lambda: divide(read_configuration(document, source="kubelet.yaml"), named(SMALL))

    yield _raised(lambda: to_go_on_with(Checkpoint(), static, "node.state"))
    yield _raised(restarted("0-3"))
    yield _raised(restarted("2-7", app="0-1"))
    misnamed = msgspec.structs.replace(static, reserved=3, reserved_cpus=0b11)
    yield _raised(lambda: NodeManagers(named(SMALL), misnamed))
    yield _raised(configured(cpuManagerPolicy="static"))
    yield _raised(configured(cpuManagerPolicy="static", reservedSystemCPUs="6-9"))


def test_every_message_is_one_that_is_said() -> None:
    blocks = re.findall(r"^```text\n(.*?)^```", TROUBLES, re.M | re.S)
    said = [line for block in blocks for line in block.splitlines()]
    owned = _raised(lambda: may_write("/kubepods/pod1", beside_kubelet=False))
    assert said == [*_admission_messages(), *_start_messages(), owned]
