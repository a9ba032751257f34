"""Machines as files: both forms, the shipped ones, what is refused, and that what is written is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from bayplan.node.machine import Cpu, Machine
from bayplan.node.machines import MachineError, UnknownMachine, as_document, file_text, named, names, read_machine
from bayplan.node.sets import format_list, mask_of
from tests.node.random_machines import machines

Doc = dict[str, Any]


def _read(text: str, source: str = "box.yaml") -> Machine:
    return read_machine(msgspec.yaml.decode(text), source)


@settings(max_examples=25, deadline=None)
@given(machine=machines())
def test_what_is_written_is_read(machine: Machine) -> None:
    assert _read(file_text(machine)) == machine
    assert read_machine(as_document(machine), "box.json") == machine


@pytest.mark.parametrize("name", names())
def test_a_shipped_machine_has_its_name_and_sources_and_can_be_written(name: str) -> None:
    machine = named(name)
    assert machine.name == name
    assert [line.partition(" ")[0] for line in machine.description.split("\n")[1:]] == ["Sources:", "Assumed:"]
    assert all(node.distances for node in machine.nodes)
    assert _read(file_text(machine)) == machine


def test_a_machine_as_a_file(snapshot: SnapshotAssertion) -> None:
    machine = msgspec.structs.replace(named("gh200"), topology=named("vm-8").topology, offline=1 << 9)
    assert file_text(machine) == snapshot


def test_an_unknown_name_is_answered_with_those_near() -> None:
    with pytest.raises(UnknownMachine) as caught:
        named("epyc-7763")
    assert "epyc-7763-2s-nps4" in caught.value.hint


@pytest.mark.parametrize(
    ("numbering", "socket_0", "core_0"),
    [
        pytest.param("threads-last", "0-3,8-11", "0,8", id="first all first threads, socket by socket"),
        pytest.param("threads-adjacent", "0-7", "0-1", id="the threads of a core one after the other"),
        pytest.param("sockets-alternating", "0,2,4,6,8,10,12,14", "0,8", id="sockets in turn"),
    ],
)
def test_cpus_are_counted_as_linux_counts(numbering: str, socket_0: str, core_0: str) -> None:
    topology = _read(
        f"""
        layout: {{sockets: 2, coresPerSocket: 4, threadsPerCore: 2, numbering: {numbering}, memoryPerNode: 1Gi}}
        """
    ).topology
    assert (format_list(topology.sockets[0]), format_list(topology.cores[0])) == (socket_0, core_0)


def test_cores_are_dealt_to_nodes_and_caches_in_order() -> None:
    topology = _read(
        """
        layout: {sockets: 2, coresPerSocket: 6, nodesPerSocket: 3, cachesPerSocket: 2, memoryPerNode: 1Gi}
        """
    ).topology
    assert [format_list(cpus) for cpus in topology.nodes.values()] == ["0-1", "2-3", "4-5", "6-7", "8-9", "10-11"]
    assert [format_list(cpus) for cpus in topology.caches.values()] == ["0-2", "3-5", "6-8", "9-11"]


def test_both_forms_give_the_same_machine() -> None:
    laid_out = _read(
        """
        layout: {sockets: 2, coresPerSocket: 1, threadsPerCore: 2, memoryPerNode: 1Gi, distances: {otherSocket: 21}}
        """
    )
    listed = _read(
        """
        cpus:
        - {ids: "0,2", socket: 0, node: 0}
        - {ids: 1, socket: 1, node: 1}
        - {ids: 3, socket: 1, node: 1, core: 1}
        nodes:
        - {id: 1, memory: 1Gi, distances: [21, 10]}
        - {id: 0, memory: 1073741824, distances: [10, 21]}
        """
    )
    assert laid_out == listed
    assert listed.name == "box"


def test_a_core_whose_first_cpu_is_offline_is_named_after_the_next() -> None:
    machine = _read("{layout: {coresPerSocket: 2, threadsPerCore: 2, memoryPerNode: 1Gi}, offline: 0}")
    assert machine.topology.cpus == (Cpu(1, 1, 0, 0, 0), Cpu(2, 2, 0, 0, 0), Cpu(3, 1, 0, 0, 0))
    assert machine.offline == 1


def test_nodes_beside_a_layout_give_the_ids_and_the_nodes_without_cpus() -> None:
    machine = named("ac922")
    assert [*machine.topology.nodes] == [0, 8]
    assert [node.id for node in machine.nodes] == [0, 8, 252, 253, 254, 255]


def test_distances_may_differ_there_and_back_if_that_is_said() -> None:
    text = """
        asymmetric: true
        layout: {sockets: 2, coresPerSocket: 1}
        nodes:
        - {id: 0, memory: 1Gi, distances: [10, 20]}
        - {id: 1, memory: 1Gi, distances: [30, 10]}
        """
    machine = _read(text)
    assert machine.nodes[1].distances == {0: 30, 1: 10}
    assert _read(file_text(machine)) == machine


_LAYOUT = "layout: {sockets: 2, coresPerSocket: 2, memoryPerNode: 1Gi}"
_NODES = "nodes: [{id: 0, memory: 1Gi}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[]", ["expected a mapping, not []"], id="a list"),
        pytest.param(
            "{layout: {coresPerSocket: 2, numbering: odd}, nodes: [{id: 0}], offline: {}, name: 3}",
            [
                'layout.numbering: Unsupported value: "odd": supported values: '
                '"sockets-alternating", "threads-adjacent", "threads-last"',
                "nodes[0].memory: Required value",
                "name: expected a text, not 3",
            ],
            id="several wrong shapes at once",
        ),
        pytest.param("{}", ["expected either layout or cpus"], id="neither form"),
        pytest.param(
            f"{_LAYOUT}\nfoo: 1",
            ["foo: unknown field; allowed are name, description, layout, cpus, nodes, asymmetric, offline, devices"],
            id="an unknown key",
        ),
        pytest.param(
            "layout: {coresPerSocket: 2, memory: 1}",
            ["layout.memory: unknown field; did you mean memoryPerNode?"],
            id="an unknown key inside",
        ),
        pytest.param(
            "layout: {coresPerSocket: 0}",
            ["layout.coresPerSocket: Invalid value: 0: not in valid range [1, 8192]"],
            id="no cores",
        ),
        pytest.param(
            "layout: {coresPerSocket: 3, nodesPerSocket: 2, cachesPerSocket: 2, memoryPerNode: 1Gi}",
            [
                "layout.nodesPerSocket: 3 cores cannot be dealt evenly to 2; list them under cpus",
                "layout.cachesPerSocket: 3 cores cannot be dealt evenly to 2; list them under cpus",
            ],
            id="cores that cannot be dealt evenly",
        ),
        pytest.param(
            "layout: {coresPerSocket: 8192, sockets: 2, memoryPerNode: 1Gi}",
            ["layout: expected at most 8192 CPUs, not 16384"],
            id="more CPUs than Linux can have",
        ),
        pytest.param(
            "layout: {coresPerSocket: 2}",
            ["layout.memoryPerNode: expected the memory of the NUMA nodes"],
            id="no memory",
        ),
        pytest.param(
            "layout: {coresPerSocket: 2, memoryPerNode: -1Gi}",
            ['layout.memoryPerNode: expected bytes, not "-1Gi"'],
            id="memory below nothing",
        ),
        pytest.param(
            "layout: {coresPerSocket: 2, memoryPerNode: 64}",
            ['layout.memoryPerNode: expected 1Mi or more, or 0, not "64": without a unit it is bytes; 64Gi is usual'],
            id="a unit that was forgotten",
        ),
        pytest.param(
            "layout: {sockets: 2, coresPerSocket: 2, memoryPerNode: 1Gi, distances: {}}",
            ["layout.distances.otherSocket: expected a distance"],
            id="a distance that is needed",
        ),
        pytest.param(
            f"{_LAYOUT}\nnodes: [{{id: 0, memory: 1Gi}}, {{id: 1, memory: 1Gi}}]",
            ["layout: memoryPerNode, hugepagesPerNode and distances do not go with nodes, which say it all"],
            id="memory said twice",
        ),
        pytest.param(
            "layout: {sockets: 2, coresPerSocket: 2}\n" + _NODES,
            ["nodes: expected 2 or more, as the layout has them, not 1"],
            id="fewer nodes than the layout has",
        ),
        pytest.param(f"{_LAYOUT}\noffline: 3-4", ["offline: the layout has no CPU 4"], id="an offline CPU beyond"),
        pytest.param(f"{_LAYOUT}\noffline: 0-3", ["offline: expected a CPU that is not"], id="all CPUs offline"),
        pytest.param(
            f"{_NODES}\noffline: 5\ncpus: [{{ids: 0-1, socket: 0, node: 0}}, {{ids: 1, socket: 0, node: 0}},"
            " {ids: 5, socket: 0, node: 0}, {ids: 6, socket: 1, node: 0, core: 0}, {ids: x, socket: 0, node: 4}]",
            [
                "cpus[1].ids: CPU 1 is listed already",
                "cpus[2].ids: CPU 5 is offline",
                "cpus[3].socket: core 0 is in socket 0 already, not in 1",
                'cpus[4].ids: list "x": "x" is neither a number nor a range',
            ],
            id="all that is wrong with listed CPUs at once",
        ),
        pytest.param(
            "cpus: [{ids: 0, socket: 0, node: 1}]\n" + _NODES,
            ["cpus[0].node: there is no node 1 under nodes"],
            id="a CPU in a node that is not there",
        ),
        pytest.param(
            "cpus: [{ids: 0, socket: 0, node: 0}]\nnodes: [{id: 0, memory: 1Gi}, {id: 0, memory: lots}]",
            [
                "nodes[1].id: node 0 is listed already",
                'nodes[1].memory: "lots": ' + "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ],
            id="a node twice, and memory that is a word",
        ),
        pytest.param(
            "cpus: [{ids: 0, socket: 0, node: 0}]\n"
            "nodes: [{id: 0, memory: 1Gi, distances: [10]}, {id: 1, memory: 1Gi, distances: [20, 10]}]",
            ["nodes[0].distances: expected 2, one for each node in ascending order, not 1"],
            id="a distance missing",
        ),
        pytest.param(
            "cpus: [{ids: 0, socket: 0, node: 0}]\n"
            "nodes: [{id: 0, memory: 1Gi, distances: [11, 20]}, {id: 1, memory: 1Gi, distances: [21, 10]}]",
            [
                "nodes[0].distances: expected 10 to itself, not 11",
                "nodes[1].distances: 21 to node 0, and 20 back; if it is so, say asymmetric: true",
            ],
            id="distances that differ there and back",
        ),
        pytest.param(
            "cpus: [{ids: 0, socket: 0, node: 0}]\n"
            "nodes: [{id: 0, memory: 1Gi, distances: [10, 10]}, {id: 1, memory: 1Gi, distances: [10, 10]}]",
            [
                "nodes[0].distances: expected more than 10 to node 1, not 10",
                "nodes[1].distances: expected more than 10 to node 0, not 10",
            ],
            id="another node nearer than one's own",
        ),
        pytest.param(
            "layout: {coresPerSocket: 1, memoryPerNode: 1Gi, hugepagesPerNode: {'100': 1}}",
            ["layout.hugepagesPerNode.100: expected a page size such as 2Mi"],
            id="hugepages of an odd size",
        ),
        pytest.param(
            f"{_LAYOUT}\ndevices: [{{resource: nvidia.com/gpu, id: a, nodes: 0-2}},"
            " {resource: nvidia.com/gpu, id: a}]",
            ["devices[0].nodes: there is no node 2", "devices[1].id: nvidia.com/gpu a is listed already"],
            id="devices on unknown nodes, and one twice",
        ),
    ],
)
def test_bad_files_are_refused_with_all_that_is_wrong(text: str, expected: list[str]) -> None:
    with pytest.raises(MachineError) as caught:
        _read(text)
    assert caught.value.message.splitlines() == [f"box.yaml: {each}" for each in expected]


def test_the_documentation_lists_every_shipped_machine() -> None:
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text()
    assert [name for name in names() if f"`{name}`" not in page] == []


def test_offline_and_online_cpus_never_meet() -> None:
    machine = _read("{layout: {coresPerSocket: 4, memoryPerNode: 1Gi}, offline: '1,3'}")
    assert machine.topology.all == mask_of((0, 2))
    assert machine.topology.all & machine.offline == 0
