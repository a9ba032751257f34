"""The kubelet's checkpoints, as upstream itself wrote them, are read; whatever was changed in one is noticed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.node.checkpoint.errors import CheckpointError, CorruptCheckpointError
from bayplan.node.checkpoint.go_dump import checksum
from bayplan.node.checkpoint.kubelet_cpu import KubeletCpus, read_cpu_state, to_start_from
from bayplan.node.checkpoint.kubelet_memory import KubeletMemory, read_memory_state
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import StateError
from bayplan.node.memory.state import Block, MemoryState
from bayplan.node.sets import mask_of, parse_list
from tests.node.checkpoint.states import BOTH, CPUS, FILES, GI, MEMORY, ONE, THREE, TWO, file

PODS = {ONE: parse_list("4-7,10,12"), THREE: 0}
POD_BLOCKS = {ONE: (Block("memory", BOTH, 10 * GI),), THREE: ()}
OLDEST = CpuState(CPUS.default, {"": {"5fd1": parse_list("4-7"), "a0c2": parse_list("8")}})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpu-v1.json", KubeletCpus(1, "static", OLDEST)),
        ("cpu-v2-1.36.json", KubeletCpus(2, "static", CPUS)),
        ("cpu-v2-none-1.36.json", KubeletCpus(2, "none", CpuState())),
        ("cpu-v3-1.36.json", KubeletCpus(3, "static", CPUS, PODS)),
        ("cpu-v3-1.37.json", KubeletCpus(3, "static", CPUS, PODS)),
        ("cpu-v3-empty-1.36.json", KubeletCpus(3, "static", CpuState(parse_list("0-15")))),
        ("cpu-v4-1.37.json", KubeletCpus(4, "static", CPUS, PODS, {ONE: {"app": mask_of([4, 5])}})),
    ],
)
def test_cpu_manager_state(name: str, expected: KubeletCpus) -> None:
    assert read_cpu_state(file(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memory-v1-1.36.json", KubeletMemory(1, "Static", MEMORY)),
        ("memory-v1-none-1.36.json", KubeletMemory(1, "None", MemoryState())),
        ("memory-v2-1.36.json", KubeletMemory(2, "Static", MEMORY, POD_BLOCKS)),
        ("memory-v2-1.37.json", KubeletMemory(2, "Static", MEMORY, POD_BLOCKS)),
        ("memory-v2-empty-1.36.json", KubeletMemory(2, "Static", MemoryState(MEMORY.nodes))),
        ("memory-v3-1.37.json", KubeletMemory(3, "Static", MEMORY, POD_BLOCKS)),
    ],
)
def test_memory_manager_state(name: str, expected: KubeletMemory) -> None:
    assert read_memory_state(file(name)) == expected


@settings(max_examples=10)  # thirteen files, each of thousands of bytes to hash in Python
@given(st.data())
@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("*.json") if "none" not in path.name))
def test_a_changed_digit_is_noticed(name: str, data: st.DataObject) -> None:
    blob = file(name)
    start = blob.find(b'"data"') if b'"data"' in blob else 0  # what stands before it is for older kubelets
    places = [match.start() for match in re.finditer(rb"\d", blob) if match.start() > start]
    place = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from([digit for digit in b"0123456789" if digit != blob[place]]))
    read = read_cpu_state if name.startswith("cpu") else read_memory_state
    with pytest.raises((CheckpointError, CorruptCheckpointError)):
        read(blob[:place] + bytes([other]) + blob[place + 1 :])


@pytest.mark.parametrize("name", ["cpu-v2-1.36.json", "memory-v2-1.36.json", "cpu-v4-1.37.json"])
def test_a_file_cut_short_is_refused(name: str) -> None:
    read = read_cpu_state if name.startswith("cpu") else read_memory_state
    with pytest.raises(CheckpointError, match=r"^/var/lib/kubelet/state: not a checkpoint of the kubelet: "):
        read(file(name)[:-20], "/var/lib/kubelet/state")


def test_a_corrupt_file_tells_both_checksums() -> None:
    blob = file("cpu-v2-1.36.json").replace(b'"8"', b'"9"')
    with pytest.raises(CorruptCheckpointError) as refused:
        read_cpu_state(blob, "/var/lib/kubelet/cpu_manager_state")
    assert refused.value.message == (
        "/var/lib/kubelet/cpu_manager_state: checkpoint is corrupted: "
        f"it says its checksum is 1426445554, that of its content is {refused.value.found}"
    )
    assert "the file is kept as it is" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        pytest.param("cpu-v2-1.36.json", True, id="the kubelet accepts an old file without a checksum"),
        pytest.param("cpu-v3-1.36.json", False, id="but none with pods"),
    ],
)
def test_no_checksum(name: str, accepted: bool) -> None:
    document = {**json.loads(file(name)), "checksum": 0}
    if accepted:
        assert read_cpu_state(json.dumps(document).encode()).state == CPUS
        return
    with pytest.raises(CorruptCheckpointError, match="its checksum is 0,"):
        read_cpu_state(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "Input data was truncated", id="nothing"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="a list"),
        pytest.param(b"{}", "missing required field `policyName`", id="no policy"),
        pytest.param(b"[" * 100_000, "maximum recursion depth", id="brackets without end"),
        pytest.param(
            b'{"policyName":"static","defaultCpuSet":"0","entries":{"pod":{"app":"1"},"5fd1":"2"},"checksum":1}',
            "some entries name no pod",
            id="entries of two formats",
        ),
        pytest.param(
            b'{"policyName":"static","defaultCpuSet":"0","entries":{"5fd1":"2"},"podEntries":{},"checksum":1}',
            "some entries name no pod",
            id="containers without pods in a later format",
        ),
        pytest.param(
            b'{"policyName":"static","defaultCpuSet":"a","checksum":0}', 'list "a"', id="a list of CPUs that is none"
        ),
    ],
)
def test_what_is_no_checkpoint(content: bytes, why: str) -> None:
    with pytest.raises(CheckpointError, match=re.escape(why)):
        read_cpu_state(content)


@pytest.mark.parametrize("name", ["cpu-v2-1.36.json", "memory-v1-1.36.json"])
def test_a_checksum_under_another_name_is_not_taken_for_none(name: str) -> None:
    read = read_cpu_state if name.startswith("cpu") else read_memory_state
    with pytest.raises(CorruptCheckpointError, match="its checksum is 0,"):
        read(file(name).replace(b'"checksum"', b'"cheCksum"'))


def test_memory_on_a_node_that_cannot_be() -> None:
    blob = file("memory-v1-1.36.json").replace(b'"cells":[10]', b'"cells":[-1]')
    with pytest.raises(CheckpointError, match="Expected `int` >= 0"):
        read_memory_state(blob)


def test_one_goes_on_from_a_good_state_alone() -> None:
    assert to_start_from(read_cpu_state(file("cpu-v4-1.37.json"))) == CPUS
    twice = KubeletCpus(2, "static", CpuState(0, {ONE: {"a": 0b0110}, TWO: {"b": 0b0100, "c": 0b1000}}))
    with pytest.raises(StateError, match=f"^state: CPUs 2 are assigned to pod {ONE} and to pod {TWO}"):
        to_start_from(twice, "state")
    with pytest.raises(StateError, match="names containers, not their pods"):
        to_start_from(read_cpu_state(file("cpu-v1.json")))


@pytest.mark.parametrize(("text", "found"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_fnv(text: str, found: int) -> None:
    assert checksum(text) == found
