"""Reading a trace, and the workload made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.simulate.openb.trace import Trace, TraceError, TraceNode, TracePod, arrivals, read_trace, renamed

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p0,12000,16384,1,1000,,LS
p1,6000,12288,1,460,V100M16|V100M32,LS
"""


def written(folder: Path, nodes: str = NODES, pods: str = PODS) -> tuple[Path, Path]:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    return folder / "nodes.csv", folder / "pods.csv"


def test_a_trace_is_read(tmp_path: Path) -> None:
    trace = read_trace(*written(tmp_path))
    assert trace.nodes == (TraceNode("n0", 64000, 262144, 2, "P100"), TraceNode("n1", 96000, 393216, 8, "G2"))
    assert trace.pods[0] == TracePod("p0", 12000, 16384, 1, 1000)
    assert trace.pods[1].models == ("V100M16", "V100M32")
    assert trace.capacity == 10_000


def test_five_columns_of_pods_will_do(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1,8,1000\np1,1000,1,0,0\n"
    assert [pod.total_gpu for pod in read_trace(*written(tmp_path, pods=pods)).pods] == [8000, 0]


@pytest.mark.parametrize(
    ("nodes", "pods", "told"),
    [
        pytest.param("sn,gpu\nn0,2\n", PODS, "nodes.csv:1: no column 'cpu_milli'", id="a column of nodes is missing"),
        pytest.param(NODES, "name,cpu_milli\n", "pods.csv:1: no column 'memory_mib'", id="a column of pods is missing"),
        pytest.param(NODES, "", "pods.csv:1: no column 'name'", id="an empty file"),
        pytest.param(
            NODES, PODS + "p2,many,1,0,0,,\n", "pods.csv:4: cpu_milli: expected a whole number, not 'many'", id="a word"
        ),
        pytest.param(NODES, PODS + "p2,-1,1,0,0,,\n", "pods.csv:4: cpu_milli: expected", id="a negative number"),
        pytest.param(NODES, PODS + "p2,1,1\n", "pods.csv:4: num_gpu: expected a whole number", id="a short row"),
        pytest.param(NODES, PODS + "p2,1,1,1,1500,,\n", "pods.csv:4: gpu_milli: expected 1 to 1000", id="1.5 GPUs"),
        pytest.param(NODES, PODS + "p2,1,1,2,500,,\n", "pods.csv:4: gpu_milli: a share is of one GPU", id="two halves"),
        pytest.param(NODES, PODS + ",1,1,1,500,,\n", "pods.csv:4: name: is empty", id="a pod without a name"),
        pytest.param(NODES, PODS + "p0,1,1,0,0,,\n", "pods.csv:4: name: 'p0' stands on line 2", id="a pod twice"),
        pytest.param(NODES + "n1,1,1,8,\n", PODS, "nodes.csv:4: sn: 'n1' stands on line 3 already", id="a node twice"),
        pytest.param(NODES, PODS.splitlines()[0] + "\n", "pods.csv: no pods", id="a head without pods"),
        pytest.param(NODES.splitlines()[0] + "\n", PODS, "nodes.csv: no nodes", id="a head without nodes"),
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_read_says_where(tmp_path: Path, nodes: str, pods: str, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(*written(tmp_path, nodes, pods))
    assert told in caught.value.message


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read_trace(*written(tmp_path, "\ufeff" + NODES, "\ufeff" + PODS)) == read_trace(*written(tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone\.csv: No such file"):
        read_trace(tmp_path / "gone.csv", tmp_path / "gone.csv")


def test_the_last_pod_may_ask_for_more_than_was_left_as_with_the_authors() -> None:
    trace = Trace((TraceNode("n0", 64000, 262144, 8, "P100"),), (TracePod("p0", 1000, 1024, 8, 1000),))
    assert [sum(pod.total_gpu for pod in arrivals(trace, 0, inflate)) for inflate in (1.1, 1.2)] == [8000, 16_000]


POD = st.builds(
    lambda name, cpu, gpus, share: TracePod(f"p{name}", cpu, 1024, gpus, (share if gpus == 1 else 1000) if gpus else 0),
    st.integers(0, 10**6), st.integers(0, 64000), st.sampled_from((0, 1, 1, 2, 8)), st.integers(1, 1000),
)  # fmt: skip


@given(st.lists(POD, min_size=1, max_size=30, unique_by=lambda pod: pod.name), st.integers(0, 99), st.floats(0.1, 3))
def test_arrivals_ask_for_what_was_wanted_and_no_more_than_one_pod_beyond(
    pods: list[TracePod], seed: int, inflate: float
) -> None:
    trace = Trace((TraceNode("n", 64000, 1, 8, ""),), tuple(pods))
    found = arrivals(trace, seed, inflate)
    asked = sum(pod.total_gpu for pod in found)
    assert asked <= inflate * trace.capacity + 7000  # the authors look at one GPU of the next pod, not at all of them
    assert len({pod.name for pod in found}) == len(found)
    assert found == arrivals(trace, seed, inflate)


@pytest.mark.parametrize(
    ("gpus", "count"),
    [
        pytest.param(0, 3, id="pods that ask for no GPU come once each"),
        pytest.param(1, 8, id="others come until all GPUs are asked for"),
    ],
)
def test_pods_come_again_while_that_asks_for_more(gpus: int, count: int) -> None:
    pods = tuple(TracePod(f"p{number}", 1000, 1, gpus, 1000 * gpus) for number in range(3))
    assert len(arrivals(Trace((TraceNode("n", 64000, 1, 8, ""),), pods), 1, 1.0)) == count


def test_nodes_are_in_an_order_of_the_seed() -> None:
    trace = Trace(tuple(TraceNode(f"n{number}", 1, 1, 1, "") for number in range(20)), ())
    names = [node.name for node in renamed(trace, 1)]
    assert names == sorted(names)
    assert {name.partition("-")[2] for name in names} == {node.name for node in trace.nodes}
    assert names != [node.name for node in renamed(trace, 2)]
