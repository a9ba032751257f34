"""Runs over traces: what they count, that they repeat themselves, and the paper's own table."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from bayplan.scheduling.policies import GPU_POLICIES
from bayplan.simulate.means import mean_and_error
from bayplan.simulate.openb.run import Run, run, steps
from bayplan.simulate.openb.table import lines, read_expected
from bayplan.simulate.openb.trace import Trace, TraceError, TraceNode, TracePod, read_trace
from bayplan.simulate.processes import in_processes

OPENB = Path(os.environ.get("BAYPLAN_OPENB", Path(__file__).parents[4] / "shared/data/openb"))


SIZES = ((0, 0), (1, 300), (1, 1000), (2, 1000))


def made(nodes: int = 12, pods: int = 90) -> Trace:
    chance = random.Random(5)

    def node(number: int) -> TraceNode:
        return TraceNode(f"n{number}", 64000, 262144, chance.choice((2, 4, 8)), chance.choice(("T4", "G2")))

    def pod(number: int) -> TracePod:
        return TracePod(f"p{number}", chance.choice((1000, 8000)), 4096, *chance.choice(SIZES))

    return Trace(tuple(map(node, range(nodes))), tuple(map(pod, range(pods))))


@pytest.mark.parametrize("policy", GPU_POLICIES)
def test_no_policy_gives_away_more_than_there_is_or_was_asked_for(policy: str) -> None:
    trace = made()
    used = 0
    for step in steps(trace, policy, 1, 1.3):
        assert used <= step.used <= min(step.asked, trace.capacity)
        used = step.used
    assert used > 0.8 * trace.capacity


def test_the_same_seed_gives_the_same_run_in_any_process() -> None:
    trace = made()
    here = [run(trace, policy, seed, 1.2) for policy in ("random", "fgd") for seed in (1, 2)]
    asked = [(trace, policy, seed, 1.2) for policy in ("random", "fgd") for seed in (1, 2)]
    assert [*in_processes(run, asked, 2).found.values()] == here
    assert here[0].allocated != here[1].allocated


def test_pods_that_want_a_model_get_no_other() -> None:
    trace = Trace(
        (TraceNode("n0", 64000, 1024, 8, "T4"), TraceNode("n1", 64000, 1024, 1, "G2")),
        tuple(TracePod(f"p{number}", 1000, 1, 1, 1000, ("G2", "V100")) for number in range(4)),
    )
    assert run(trace, "fgd", 1, 0.4).placed == 1


def test_at_a_percent_at_which_no_pod_came_is_in_use_what_was_before() -> None:
    trace = Trace(
        (TraceNode("n0", 64000, 1024, 2, "T4"),), (TracePod("p0", 1, 1, 1, 1000), TracePod("p1", 1, 1, 1, 1000))
    )
    expected = {asked: 50.0 * (asked // 50) for asked in range(101)}
    assert run(trace, "bestfit", 1, 1.0).allocated == expected


def test_means_have_standard_errors() -> None:
    mean, error = mean_and_error([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert error == pytest.approx(0.6455, abs=1e-4)
    assert mean_and_error([7.0]) == (7.0, None)


def test_a_published_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("workload,sc_policy,tune,seed,total_gpus,0,5\nx,06-FGD,1.3,42,6212,0.25,5.1\n")
    assert read_expected(tmp_path / "table.csv") == {"fgd": [Run("fgd", 42, 0, 0, {0: 0.25, 5: 5.1})]}
    (tmp_path / "wrong.csv").write_text("sc_policy,seed,0\n06-FGD,x,1\n")
    with pytest.raises(TraceError, match=r"wrong\.csv:2"):
        read_expected(tmp_path / "wrong.csv")
    (tmp_path / "other.csv").write_text("policy,0\n")
    with pytest.raises(TraceError, match="no column 'sc_policy'"):
        read_expected(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        pytest.param("06-FGD", "seed: the row ends before it", id="a row of one cell"),
        pytest.param("06-FGD,42,1", "50: the row ends before it", id="a row without its last cell"),
        pytest.param("06-FGD,42,1,2,3,4", "2 cells more than there are columns", id="cells that no column has"),
        pytest.param("06-FGD,42,nan,2", "0: expected a number, not 'nan'", id="what is no number"),
        pytest.param("06-FGD,42,1,inf", "50: expected a number, not 'inf'", id="a number without end"),
        pytest.param("06-FGD,-1,1,2", "seed: expected a whole number, not '-1'", id="a seed below zero"),
        pytest.param(",42,1,2", "sc_policy: is empty", id="no policy"),
    ],
)
def test_a_published_row_that_cannot_be_read_is_named(tmp_path: Path, row: str, told: str) -> None:
    (tmp_path / "table.csv").write_text(f"sc_policy,seed,0,50\n06-FGD,41,1,2\n{row}\n")
    with pytest.raises(TraceError) as caught:
        read_expected(tmp_path / "table.csv")
    assert caught.value.message == f"{tmp_path / 'table.csv'}:3: {told}"


@pytest.mark.slow
@pytest.mark.skipif(not OPENB.is_dir(), reason="no openb trace here; BAYPLAN_OPENB names its folder")
def test_the_means_are_those_of_the_paper() -> None:
    """Half of the paper's seeds, so that it takes a minute: the bounds are wider by what that leaves to chance."""
    trace = read_trace(OPENB / "openb_node_list_gpu_node.csv", OPENB / "openb_pod_list_default.csv")
    expected = read_expected(OPENB / "expected_allocation_default.csv")
    asked_for = [(trace, policy, seed, 1.3) for policy in GPU_POLICIES for seed in range(42, 46)]
    found = lines(in_processes(run, asked_for, 2).found.values(), expected)
    for line in found:
        for asked, published in line.expected.items():
            ours = line.means[asked]
            assert published.error is not None
            assert ours.error is not None
            bound = max(0.3, 2.5 * (published.error**2 + ours.error**2) ** 0.5)
            assert abs(ours.value - published.value) <= bound, (line.policy, asked)
    at_full = {line.policy: line.means[100].value for line in found}
    assert sorted(at_full, key=at_full.__getitem__)[-2:] == ["bestfit", "fgd"]
