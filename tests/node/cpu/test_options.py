"""The options of the static policy, and what the kubelet says of those it refuses."""

from __future__ import annotations

import pytest

from bayplan.node.cpu.options import StaticOptions, check_machine, read_options
from bayplan.node.errors import PolicyError
from bayplan.node.machine import Topology
from tests.node.cpu.machines import machine

FULL, NODES, CORES = "full-pcpus-only", "distribute-cpus-across-numa", "distribute-cpus-across-cores"
SOCKET, STRICT, CACHE = "align-by-socket", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"
TOGETHER = "can not be used at the same time"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, StaticOptions(), id="none is on by itself"),
        pytest.param({FULL: "true"}, StaticOptions(full_cores=True), id="whole cores"),
        pytest.param({NODES: "1", STRICT: "T"}, StaticOptions(across_nodes=True, strict=True), id="as Go writes true"),
        pytest.param({CORES: "True"}, StaticOptions(across_cores=True), id="an alpha option needs no gate"),
        pytest.param({SOCKET: "t", CACHE: "TRUE"}, StaticOptions(by_socket=True, by_cache=True), id="two that mix"),
        pytest.param({FULL: "f", CORES: "true"}, StaticOptions(across_cores=True), id="one that is off is no matter"),
    ],
)
def test_options(given: dict[str, str], expected: StaticOptions) -> None:
    assert read_options(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"turbo": "true"}, 'unknown CPU Manager Policy option: "turbo"', id="unknown"),
        pytest.param(
            {FULL: "yes"},
            f'bad value for option "{FULL}": strconv.ParseBool: parsing "yes": invalid syntax',
            id="no boolean",
        ),
        pytest.param(
            {FULL: '"on"\n'},
            rf'bad value for option "{FULL}": strconv.ParseBool: parsing "\"on\"\n": invalid syntax',
            id="values are quoted as Go quotes them",
        ),
        pytest.param({FULL: "1", CORES: "1"}, f"static policy options {FULL} and {CORES} {TOGETHER}", id="full, cores"),
        pytest.param(
            {CORES: "1", NODES: "1"}, f"static policy options {NODES} and {CORES} {TOGETHER}", id="two, cores"
        ),
        pytest.param({CACHE: "1", CORES: "1"}, f"static policy options {CACHE} and {CORES} {TOGETHER}", id="l3, cores"),
        pytest.param({NODES: "1", CACHE: "1"}, f"static policy options {CACHE} and {NODES} {TOGETHER}", id="l3, numa"),
    ],
)
def test_refused_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        read_options(given)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("topology", "policy", "message"),
    [
        pytest.param(
            machine(sockets=2, nodes=4),
            "single-numa-node",
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
            id="a socket is more than the one NUMA node",
        ),
        pytest.param(
            machine(sockets=2, nodes=1),
            "none",
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
            id="a NUMA node is more than a socket",
        ),
    ],
)
def test_machines_that_cannot_align_by_socket(topology: Topology, policy: str, message: str) -> None:
    check_machine(StaticOptions(), topology, policy)
    with pytest.raises(PolicyError) as refused:
        check_machine(StaticOptions(by_socket=True), topology, policy)
    assert refused.value.message == message


def test_sockets_of_several_nodes_can_be_aligned_to() -> None:
    check_machine(StaticOptions(by_socket=True), machine(sockets=2, nodes=4), "restricted")
