"""Wished against chosen: the account, and the reasons that a decision gives."""

from __future__ import annotations

import pytest

from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.state import ClusterState
from bayplan.simulate.vms import MoveResult, Why
from bayplan.simulate.vms.agreement import Agreement, agreement
from bayplan.simulate.vms.mirror import Latencies
from bayplan.simulate.vms.reasons import TIE, judge, why_elsewhere, why_refused
from bayplan.testing import node, pod


def moved(wished: str, chosen: str, plugin: str = "", cost: float = 0.0) -> MoveResult:
    return MoveResult(wished, chosen, Why(plugin), vm="vm", source="a", cost=cost, moved=True)


def test_a_run_without_moves() -> None:
    assert agreement([]) == Agreement()
    assert Agreement().share == 1.0


def test_an_account_of_everything() -> None:
    stayed = MoveResult("b", "a", Why("PodDisruptionBudget"), vm="vm", source="a")
    direct = MoveResult("b", "b", Why("direct"), True, "vm", "a", moved=True)
    odd = MoveResult("b", "c", Why("", "nobody knows"), vm="vm", source="a", cost=-0.1, moved=True)

    found = agreement(
        [moved("b", "b"), moved("b", "c", "NodeResourcesFit", 0.3), odd, stayed, direct], placed=4, as_wished=1
    )

    assert found.moves == found.followed + found.elsewhere + found.refused + found.direct == 5
    assert found.share == 0.25
    assert found.reasons == {"NodeResourcesFit": 1, "PodDisruptionBudget": 1, "other": 1}
    assert [found.mean_cost, found.worst_cost] == pytest.approx([0.1, 0.3])
    assert found.text() == (
        "1 of 4 moves went as wished (25%); 2 elsewhere, 1 refused, 1 direct\n"
        "     1  NodeResourcesFit\n"
        "     1  PodDisruptionBudget\n"
        "     1  other\n"
        "following the scheduler: pressure +0.100 on average, +0.300 at worst\n"
        "1 of 4 VMs were placed where the scenario had them"
    )


def cluster() -> ClusterState:
    return ClusterState(
        each.view()
        for each in (
            node("big").offers(cpu=32, memory="64Gi"),
            node("same").offers(cpu=32, memory="64Gi"),
            node("busy").offers(cpu=32, memory="64Gi"),
            node("kept").offers(cpu=32, memory="64Gi").tainted("k", "v"),
            pod("other").requests(cpu=16, memory="32Gi").on("busy"),
        )
    )


@pytest.mark.parametrize(
    ("wished", "chosen", "plugin", "text"),
    [
        pytest.param("big", "big", "", "", id="as wished there is nothing to explain"),
        pytest.param("same", "big", TIE, "big and same score", id="a tie"),
        pytest.param("busy", "big", "NodeResourcesFit", "big scores", id="a better score"),
        pytest.param("kept", "big", "TaintToleration", "kept: TaintToleration: node(s) had", id="a refusal"),
        pytest.param("gone", "big", "", "gone: no such node", id="a node that is not there"),
        pytest.param("big", "kept", "", "kept was chosen by another", id="a choice that we would not make"),
        pytest.param("big", "busy", "", "big scores", id="a choice that was better once"),
    ],
)
def test_why_a_vm_is_elsewhere(wished: str, chosen: str, plugin: str, text: str) -> None:
    decision = judge(cluster(), pod("vm").requests(cpu=4, memory="8Gi").view())

    found = why_elsewhere(decision, wished, chosen)

    assert (found.plugin, found.text[: len(text)]) == (plugin, text)


def test_why_no_node_would_do() -> None:
    decision = judge(cluster(), pod("vm").requests(cpu=40).view())

    assert why_refused(decision) == Why("NodeResourcesFit", "NodeResourcesFit: Insufficient cpu")
    assert why_refused(decision, "kept").plugin == "TaintToleration"


def test_a_real_schedulers_word_stands_where_we_would_have_placed_the_pod() -> None:
    decision = judge(cluster(), pod("vm").requests(cpu=4).view())

    assert why_refused(decision, "big", "0/4 nodes are available") == Why("", "0/4 nodes are available")


# --- latencies


def at(seconds: float) -> Instant:
    return Instant(round(seconds * SECOND))


def test_both_moments_make_a_span_in_any_order() -> None:
    found = Latencies()
    assert found.quantile(0.99) == 0

    found.note("a", at(10), bound=True)
    found.note("a", at(10.5), bound=False)
    found.note("b", at(20.25), bound=False)
    found.note("b", at(20), bound=True)
    found.note("c", at(30), bound=True)

    assert len(found) == 2
    assert (found.quantile(0.5), found.quantile(0.99)) == (0.25, 0.5)


def test_clocks_that_differ_do_not_make_a_span_negative() -> None:
    found = Latencies()
    found.note("a", at(10), bound=False)
    found.note("a", at(11), bound=True)
    assert found.quantile(0.99) == 0
