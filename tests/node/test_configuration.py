"""A KubeletConfiguration and the kubelet's flags become a node's settings, or every fault of them is told."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.model.quantity import parse
from bayplan.node.configuration import (
    NodeConfiguration,
    NodeConfigurationError,
    Threshold,
    file_named,
    read_configuration,
)
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import mask_of

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
GI = 1024**3


def told(document: Any = None, arguments: list[str] | None = None) -> list[str]:
    with pytest.raises(NodeConfigurationError) as refused:
        read_configuration(document, arguments or [])
    return [fault.text("") for fault in refused.value.faults]


def test_nothing_given_is_the_kubelets_defaults() -> None:
    assert read_configuration() == NodeConfiguration(eviction=Threshold(parse("100Mi")))


def test_a_whole_file() -> None:
    read = read_configuration(
        {
            **HEADER,
            "cpuManagerPolicy": "static",
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
            "topologyManagerPolicy": "restricted",
            "topologyManagerScope": "pod",
            "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": 4194304}}],
            "systemReserved": {"cpu": "500m", "memory": "1Gi"},
            "kubeReserved": {"cpu": "1", "pid": "1000"},
            "systemReservedCgroup": "/system.slice",
            "enforceNodeAllocatable": ["pods", "system-reserved"],
            "evictionHard": {"memory.available": "5%"},
            "cgroupDriver": "systemd",
            "cgroupRoot": "/",
            "cpuCFSQuota": False,
            "cpuCFSQuotaPeriod": "10ms",
            "maxPods": 250,
        }
    )
    assert read.policies == NodePolicies(
        cpu="static",
        cpu_options={"full-pcpus-only": "true"},
        reserved=2,
        topology=TopologyPolicies("restricted", "pod", {"prefer-closest-numa-nodes": "true"}),
        memory="Static",
        reserved_memory={0: {"memory": GI, "hugepages-2Mi": 4194304}},
    )
    assert (read.cgroup_driver, read.cgroup_root, read.system_cgroup) == ("systemd", "/", "/system.slice")
    assert (read.cfs_quota, read.cfs_period) == (False, 10_000)
    assert read.eviction.of(1_000_000_000) == 50_000_000  # of 5% in 32 bits, rounded down
    assert read.enforced == ("pods", "system-reserved")


def test_every_flag() -> None:
    read = read_configuration(
        {"cpuManagerPolicy": "none", "systemReserved": {"memory": "9Gi"}, "cgroupRoot": "/kept"},
        [
            "/usr/bin/kubelet",
            "--config=/etc/kubelet.yaml",
            "-v=2",
            "--cpu_manager_policy",
            "static",
            "--cpu-manager-policy-options=full-pcpus-only=true",
            "--cpu-manager-policy-options=strict-cpu-reservation=true",
            "--topology-manager-policy=best-effort",
            "--topology-manager-policy-options=max-allowable-numa-nodes=9,prefer-closest-numa-nodes=true",
            "--memory-manager-policy=Static",
            "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi",
            "--reserved-memory=2:memory=3Gi",
            "--system-reserved=cpu=2,memory=2Gi",
            "--kube-reserved=cpu=1500m",
            "--eviction-hard=memory.available<1Gi,nodefs.available<10%",
            "--enforce-node-allocatable=pods,kube-reserved",
            "--kube-reserved-cgroup=/kube",
            "--cpu-cfs-quota=false",
            "--cgroups-per-qos",
            "--cpu-cfs-quota-period=50ms",
        ],
    )
    assert read.policies.cpu_options == {"full-pcpus-only": "true", "strict-cpu-reservation": "true"}
    assert (read.policies.cpu, read.policies.reserved) == ("static", 4)
    assert read.policies.reserved_memory == {
        0: {"memory": GI, "hugepages-2Mi": 4 * 1024**2},
        1: {"memory": 2 * GI},
        2: {"memory": 3 * GI},
    }
    assert read.system_reserved == {"cpu": parse("2"), "memory": parse("2Gi")}
    assert read.eviction.of(0) == GI
    assert (read.cgroup_root, read.cfs_quota, read.cfs_period) == ("/kept", False, 50_000)
    assert read.enforced == ("pods", "kube-reserved")


@pytest.mark.parametrize("flag", ["--reserved-cpus", "--reserved-system-cpus"])
def test_named_cpus_win_over_amounts(flag: str) -> None:
    read = read_configuration(
        {"systemReserved": {"cpu": "1", "memory": "1Gi"}, "kubeReserved": {"cpu": "7"}}, [f"{flag}=0-3,64"]
    )
    assert (read.policies.reserved_cpus, read.policies.reserved) == (mask_of([0, 1, 2, 3, 64]), 5)
    assert read.system_reserved == {"cpu": parse("5"), "memory": parse("1Gi")}
    assert read.kube_reserved == {}


@pytest.mark.parametrize(
    ("eviction", "of_a_mib"),
    [
        pytest.param({}, 100 * 1024**2, id="a file that does not speak of eviction leaves 100Mi"),
        pytest.param({"evictionHard": {"pid.available": "1%"}}, 0, id="a file that speaks of something else, nothing"),
        pytest.param(
            {"evictionHard": {"pid.available": "1%"}, "mergeDefaultEvictionSettings": True},
            100 * 1024**2,
            id="unless the defaults are merged",
        ),
        pytest.param({"evictionHard": {"memory.available": "100%"}}, 0, id="a hundred percent means no threshold"),
        pytest.param({"evictionHard": {"memory.available": "25%"}}, 1024**2 // 4, id="a share is one of the capacity"),
    ],
)
def test_eviction(eviction: dict[str, Any], of_a_mib: int) -> None:
    assert read_configuration(eviction).eviction.of(1024**2) == of_a_mib


def test_the_file_that_a_command_line_names() -> None:
    assert file_named(["kubelet", "--config", "/etc/kubelet.yaml", "--v=2"]) == "/etc/kubelet.yaml"
    assert file_named(["kubelet"]) == ""


def test_every_fault_is_told_at_once() -> None:
    assert told(
        {
            **HEADER,
            "cpuManagerPolicy": "dynamic",
            "cpuManagerPolicyOptions": {"full-pcpus-only": True},
            "systemReserved": {"cpu": "two", "disk": "1"},
            "topologyManagerScop": "pod",
        },
        ["--kube-reserved=cpu=-1", "--cpu-cfs-quota-period=2s", "--reserved-cpu=0"],
    ) == [
        "--reserved-cpu: unknown flag; did you mean reserved-cpus?",
        "cpuManagerPolicyOptions.full-pcpus-only: expected a text, not true",
        "topologyManagerScop: unknown field; did you mean topologyManagerScope?",
        'cpuManagerPolicy: unknown policy: "dynamic"; must be one of: none, static',
        'systemReserved.cpu: failed to parse the quantity "two": '
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        'systemReserved.disk: cannot reserve "disk" resource; cpu, memory, ephemeral-storage, pid can be',
        '--kube-reserved: resource quantity for "cpu" cannot be negative: -1',
        "--cpu-cfs-quota-period: 2s must be between 1ms and 1sec, inclusive",
    ]


def test_the_error_names_the_file() -> None:
    with pytest.raises(NodeConfigurationError, match=r"^/etc/kubelet.yaml: cgroupDriver: unknown driver"):
        read_configuration({"cgroupDriver": "runc"}, source="/etc/kubelet.yaml")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        pytest.param([], "expected a KubeletConfiguration, not []", id="a list is no configuration"),
        pytest.param({"kind": "Pod"}, 'kind: expected KubeletConfiguration, not "Pod"', id="nor is a pod"),
        pytest.param(
            {"apiVersion": "v1"},
            "apiVersion: unknown version; allowed are kubelet.config.k8s.io/v1beta1",
            id="nor one of another version",
        ),
        pytest.param(
            {"topologyManagerPolicyOptions": {"closest": "true"}},
            'topologyManagerPolicyOptions: unknown Topology Manager Policy option: "closest"',
            id="an option that the topology manager has not",
        ),
        pytest.param(
            {"cpuManagerPolicy": "static", "cpuManagerPolicyOptions": {"whole-cores": "true"}},
            'cpuManagerPolicyOptions: unknown CPU Manager Policy option: "whole-cores"',
            id="one that the CPU manager has not",
        ),
        pytest.param(
            {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
            "cpuManagerPolicyOptions: None policy: received unsupported options: full-pcpus-only",
            id="options without the static policy",
        ),
        pytest.param(
            {"enforceNodeAllocatable": ["pods", "system-reserved"]},
            "systemReservedCgroup: must be specified when "
            '"system-reserved" or "system-reserved-compressible" is in enforceNodeAllocatable',
            id="nothing can be enforced without a cgroup",
        ),
        pytest.param(
            {"enforceNodeAllocatable": ["none", "pods"]},
            'enforceNodeAllocatable: may not contain additional enforcements when "none" is specified',
            id="none stands alone",
        ),
        pytest.param(
            {"enforceNodeAllocatable": ["pods"], "cgroupsPerQOS": False},
            'enforceNodeAllocatable: cgroupsPerQOS must be set to true when "pods" is contained',
            id="pods are enforced in cgroups of their own",
        ),
        pytest.param(
            {"systemReservedCgroup": "/a", "kubeReservedCgroup": "/a"},
            "kubeReservedCgroup: /a is the systemReservedCgroup too: one limit would replace the other",
            id="two reservations in one cgroup overlap",
        ),
        pytest.param(
            {"reservedSystemCPUs": "0", "kubeReservedCgroup": "/a"},
            "reservedSystemCPUs: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
            id="named CPUs and a cgroup exclude each other",
        ),
        pytest.param(
            {"reservedSystemCPUs": "3-1"},
            'reservedSystemCPUs: unable to parse: list "3-1": 3-1 runs backwards',
            id="a list of CPUs that cannot be read",
        ),
        pytest.param(
            {
                "reservedMemory": [
                    {"numaNode": 0, "limits": {"memory": "1Gi"}},
                    {"numaNode": 0, "limits": {"memory": 5}},
                ]
            },
            "reservedMemory[1].limits.memory: "
            'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
            id="a node's memory reserved twice",
        ),
        pytest.param(
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]},
            'reservedMemory[0].limits.memory: reserved memory may not be zero for NUMA node 0 and resource "memory"',
            id="a reservation of nothing",
        ),
        pytest.param(
            {"reservedMemory": [{"numaNode": 1, "limits": {"cpu": "1"}}]},
            'reservedMemory[0].limits.cpu: the limit type "cpu" for NUMA node 1 is not supported, '
            "only [memory hugepages-<HugePageSize>] is accepted",
            id="CPU is no memory",
        ),
        pytest.param(
            {"evictionHard": {"memory.free": "1Gi"}},
            "evictionHard.memory.free: unsupported eviction signal memory.free",
            id="an unknown signal",
        ),
        pytest.param(
            {"evictionHard": {"memory.available": "120%"}},
            "evictionHard.memory.available: eviction percentage threshold memory.available must be <= 100%: 120%",
            id="more than everything",
        ),
        pytest.param(
            {"evictionHard": {"memory.available": "1_0%"}},
            'evictionHard.memory.available: expected a percentage, not "1_0%"',
            id="a number as only Python writes it",
        ),
        pytest.param(
            {"evictionHard": {"memory.available": "1e400%"}},
            "evictionHard.memory.available: eviction percentage threshold memory.available must be <= 100%: 1e400%",
            id="a percentage beyond all numbers",
        ),
    ],
)
def test_one_fault(document: Any, fault: str) -> None:
    assert told(document) == [fault]


@pytest.mark.parametrize(
    ("flag", "fault"),
    [
        pytest.param(
            "--reserved-memory=memory=1Gi",
            "the reserved memory has incorrect format, "
            "expected numaNodeID:type=quantity[,type=quantity...], got memory=1Gi",
            id="no node",
        ),
        pytest.param(
            "--reserved-memory=x:memory=1Gi",
            "failed to convert the NUMA node ID, expected integer, got x",
            id="a node that is no number",
        ),
        pytest.param(
            "--reserved-memory=-+5:memory=1Gi",
            "failed to convert the NUMA node ID, expected integer, got -+5",
            id="a node with two signs",
        ),
        pytest.param(
            "--reserved-memory=0:memory",
            "the reserved limit has incorrect value, expected type=quantity, got memory",
            id="no amount",
        ),
        pytest.param("--reserved-memory=0:cpu=1", 'memory type conversion error, unknown type: "cpu"', id="no memory"),
        pytest.param("--system-reserved=cpu", "malformed pair, expect string=string", id="no pair"),
        pytest.param(
            "--eviction-hard=memory.available=1Gi", "malformed pair, expect string<string", id="not less than"
        ),
        pytest.param("--cpu-cfs-quota=maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax', id="neither"),
    ],
)
def test_a_flag_that_cannot_be_read(flag: str, fault: str) -> None:
    name, _, value = flag.partition("=")
    assert told(None, [flag]) == [f'{name}: invalid argument "{value}": {fault}']
