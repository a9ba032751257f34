"""NodeTopology: whom the kubelet of a node would refuse, by what the node and its pods say of themselves."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from bayplan.node.annotations.holdings import HOLDINGS
from bayplan.scheduling.configuration import read_configuration
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.framework import NodeFilter, Profile, Refusal
from bayplan.scheduling.plugins.node_topology import NodeTopology
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

BOX = """
layout: {sockets: 2, coresPerSocket: 4, threadsPerCore: 2, memoryPerNode: 16Gi}
devices: [{resource: nvidia.com/gpu, id: gpu-0, nodes: "0"}, {resource: nvidia.com/gpu, id: gpu-1, nodes: "1"}]
"""
"""CPUs 0-3 and 8-11 on NUMA node 0, 4-7 and 12-15 on node 1."""
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,8"}
SINGLE = {**STATIC, "topologyManagerPolicy": "single-numa-node"}
WHOLE_CORES = {**STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
MEMORY = {
    **SINGLE,
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "924Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}


def box(configuration: dict[str, Any] | None, name: str = "box") -> NodeManifest:
    said = {} if configuration is None else {CONFIGURATION: msgspec.json.encode(configuration).decode()}
    return node(name).offers(cpu=14, memory="30Gi", gpu=2).annotated({MACHINE: BOX, **said})


def guaranteed(cpu: str, memory: str = "1Gi", gpu: int | None = None, name: str = "asker") -> PodManifest:
    return pod(name).requests(cpu=cpu, memory=memory, gpu=gpu).limits(cpu=cpu, memory=memory)


def there(cpu: str, holds: str | None = None, name: str = "there", gpu: int | None = None) -> PodManifest:
    """A pod on the box: taken by its kubelet where it says what it holds, on its way otherwise."""
    found = guaranteed(cpu, name=name, gpu=gpu).on("box").having("metadata.uid", f"uid-{name}")
    if holds is None:
        return found
    record = {"uid": f"uid-{name}", "containers": {"app": {"cpus": holds}}}
    told = found.annotated({HOLDINGS: msgspec.json.encode(record).decode()})
    return told.phase("Running", startTime="2026-01-01T00:00:00Z")


def refusal(asker: PodManifest, *cluster: NodeManifest | PodManifest) -> Refusal | None:
    state = ClusterState(each.view() for each in cluster)
    found = NodeTopology().filter(PodInfo(asker.view()), state)
    answer = found.check(state.nodes[0]) if isinstance(found, NodeFilter) else found
    assert answer is None or answer.plugin == "NodeTopology"
    return answer


TAKEN, ALIGN, SMT, UNEXPECTED = "", "TopologyAffinityError", "SMTAlignmentError", "UnexpectedAdmissionError"
FIVES = (there("5", "1-3,9-10", "x"), there("5", "4-6,12-13", "y"))
GOING = there("5", name="y").having("metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
RUNNING_UNRECORDED = there("2").phase("Running", startTime="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("asker", "cluster", "expected"),
    [
        pytest.param(guaranteed("9"), [node()], TAKEN, id="a node that says nothing of a machine passes"),
        pytest.param(guaranteed("9"), [box(None)], TAKEN, id="policy none passes"),
        pytest.param(guaranteed("9"), [box(STATIC)], TAKEN, id="without a topology policy CPUs may be anywhere"),
        pytest.param(guaranteed("9"), [box(SINGLE)], ALIGN, id="more than one NUMA node has, where one must do"),
        pytest.param(guaranteed("8"), [box(SINGLE)], TAKEN, id="as much as one has"),
        pytest.param(pod().requests(cpu=9), [box(SINGLE)], TAKEN, id="a Burstable pod shares CPUs with others"),
        pytest.param(guaranteed("8500m"), [box(SINGLE)], TAKEN, id="so does one that asks for parts of a CPU"),
        pytest.param(guaranteed("3"), [box(WHOLE_CORES)], SMT, id="half a core where only whole ones are given"),
        pytest.param(guaranteed("15"), [box(STATIC)], UNEXPECTED, id="more than there is"),
        pytest.param(guaranteed("500m", "17Gi"), [box(MEMORY)], ALIGN, id="memory that no NUMA node has"),
        pytest.param(guaranteed("500m", "17Gi"), [box(SINGLE)], TAKEN, id="memory is counted by its manager alone"),
        pytest.param(guaranteed("1", gpu=2), [box(SINGLE)], ALIGN, id="devices of two NUMA nodes"),
        pytest.param(pod().requests(cpu="1", gpu=2), [box(SINGLE)], ALIGN, id="devices are for Burstable pods, too"),
        pytest.param(guaranteed("3"), [box(SINGLE), *FIVES], TAKEN, id="there is room beside the others"),
        pytest.param(guaranteed("4"), [box(SINGLE), *FIVES], ALIGN, id="there is room, but not on one NUMA node"),
        pytest.param(guaranteed("4"), [box(SINGLE), there("5"), there("5", name="y")], ALIGN, id="pods on their way"),
        pytest.param(
            guaranteed("4"), [box(SINGLE), there("5"), FIVES[0]], ALIGN, id="those after those that are there"
        ),
        pytest.param(
            guaranteed("4"),
            [box(SINGLE), there("5"), there("9", name="y")],
            TAKEN,
            id="who will be refused takes nothing",
        ),
        pytest.param(
            guaranteed("4"),
            [box(SINGLE), there("5"), GOING],
            TAKEN,
            id="nor who will be gone before it is taken",
        ),
        pytest.param(
            guaranteed("1"), [box(SINGLE), RUNNING_UNRECORDED], UNEXPECTED, id="nobody knows what another pod holds"
        ),
        pytest.param(
            guaranteed("1"), [box({"cpuManagerPolicy": "x"})], TAKEN, id="a kubelet that does not start is mute"
        ),
    ],
)
def test_whom_a_node_would_refuse(asker: PodManifest, cluster: list[NodeManifest | PodManifest], expected: str) -> None:
    found = refusal(asker, *cluster)

    assert (found.reasons if found else ()) == ((f"node(s) would refuse the pod: {expected}",) if expected else ())


@pytest.mark.parametrize(
    ("asker", "hopeless"),
    [
        pytest.param(guaranteed("9"), True, id="not what the machine does not have"),
        pytest.param(guaranteed("4"), False, id="but what others hold of it"),
    ],
)
def test_evicting_others_helps(asker: PodManifest, hopeless: bool) -> None:
    found = refusal(asker, box(SINGLE), *FIVES)

    assert found is not None
    assert found.hopeless is hopeless


# --- by configuration, and from columns


def configured(point: str) -> Profile:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {point: {"enabled": [{"name": "NodeTopology"}]}}}],
    }
    return read_configuration(document).profiles[0]


@pytest.mark.parametrize("point", ["filter", "multiPoint"])
def test_a_configuration_enables_it(point: str) -> None:
    assert [each.name for each in configured(point).filters][-1] == "NodeTopology"


@pytest.mark.parametrize("seed", range(4))
def test_the_columnar_path_decides_alike(seed: int) -> None:
    chance, profile = random.Random(seed), configured("filter")
    fast = FastScheduler(profile)
    for number, configuration in enumerate([SINGLE, WHOLE_CORES, None, MEMORY]):
        fast.put(box(configuration, f"box-{number}").view())
    placed: list[PodInfo] = []
    for number in range(60):
        cpu, memory = chance.choice(["500m", "1", "2", "3", "5"]), chance.choice(["512Mi", "2Gi"])
        plain = pod(f"p{number}").requests(cpu=cpu, memory=memory)
        asker = guaranteed(cpu, memory, chance.choice([None, 1]), f"p{number}") if chance.random() < 0.7 else plain
        info = PodInfo(asker.having("metadata.uid", f"uid-{number}").view())
        expected = decide(fast.state, profile, info, fast.start)
        chosen = fast.choose(info)
        assert (chosen if isinstance(chosen, str) else chosen.node) == expected.node
        assert isinstance(chosen, str) or chosen == expected
        if isinstance(chosen, str):
            fast.put_pod(info, chosen)
            placed.append(info)
        elif placed:
            fast.drop_pod(placed.pop(chance.randrange(len(placed))).key)
