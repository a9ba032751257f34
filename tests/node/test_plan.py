"""Plans: who gets what, why, and what keeps the others out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bayplan.node.admission import Remembered
from bayplan.node.cpu.state import CpuState
from bayplan.node.plan import Candidate, Plan, blockage, candidate, make_plan, pools, shares
from bayplan.node.sets import format_list, parse_list
from bayplan.testing import pod
from tests.node.planned_pods import SMALL, guaranteed, settings

STATIC_MEMORY = ("--memory-manager-policy=Static", "--reserved-memory=0:memory=100Mi")


def because(plan: Plan) -> str:
    return "\n".join(blockage(plan.refused[0]).because)


@pytest.mark.parametrize(
    ("wanted", "cpus", "why"),
    [
        pytest.param(guaranteed("a", 4), "4-7", "whole NUMA node 1 (4 CPUs)", id="a whole NUMA node"),
        pytest.param(guaranteed("a", 8), "8-15", "whole socket 1 (8 CPUs)", id="a whole socket"),
        pytest.param(guaranteed("a", 2), "2-3", "core 2 (sibling 3)", id="a whole core beside the reserved one"),
        pytest.param(guaranteed("a", 3), "1-3", "core 2 (sibling 3), single CPU 1", id="a core and one CPU"),
        pytest.param(guaranteed("a", "1500m"), "", "1500m is not a whole number of CPUs", id="a part of a CPU"),
        pytest.param(
            candidate(pod("a").limits(cpu=2, memory="2Gi").requests(cpu=2, memory="1Gi").view()),
            "",
            "Burstable: a: memory request 1Gi differs from limit 2Gi",
            id="a memory request below its limit",
        ),
        pytest.param(
            candidate(pod("a").requests(cpu=2, memory="1Gi").view()), "", "Burstable: a has no cpu limit", id="no limit"
        ),
        pytest.param(
            candidate(pod("a").view()), "", "BestEffort: a asks for neither cpu nor memory", id="nothing asked for"
        ),
        pytest.param(
            candidate(
                pod("a")
                .limits(cpu=2, memory="1Gi")
                .pod_having("resources", {"limits": {"cpu": "2", "memory": "1Gi"}})
                .view()
            ),
            "",
            "pod-level resources: the CPU manager leaves such pods alone",
            id="resources of the pod as a whole",
        ),
    ],
)
def test_why_a_container_has_its_cpus(wanted: Candidate, cpus: str, why: str) -> None:
    plan = make_plan(SMALL, settings(), [wanted])
    (share,) = shares(plan, plan.outcomes[0])
    assert (format_list(share.held.cpus), share.why) == (cpus, why)


def test_under_the_policy_none_nobody_has_cpus_of_his_own() -> None:
    plan = make_plan(SMALL, settings("--cpu-manager-policy=none"), [guaranteed("a", 4)])
    (share,) = shares(plan, plan.outcomes[0])
    assert share.why == "policy none: no container has CPUs of its own"


@pytest.mark.parametrize(
    ("flags", "pods", "manager", "sentence"),
    [
        pytest.param(
            ["--topology-manager-policy=single-numa-node"],
            [*(guaranteed(f"x{n}", 2) for n in range(4)), guaranteed("big", 4), guaranteed("p", 3)],
            "topology manager (single-numa-node, scope container)",
            "container app asks for 3 CPUs; 3 free CPUs, at most 2 in one NUMA node (1 in 0, 0 in each of 1,3, 2 in 2)",
            id="too few are left on any NUMA node",
        ),
        pytest.param(
            ["--topology-manager-policy=restricted"],
            [*(guaranteed(f"x{n}", 3) for n in range(4)), guaranteed("p", 2)],
            "topology manager (restricted, scope container)",
            "fragmented: enough is free in all, but not together",
            id="enough is free, and not together",
        ),
        pytest.param(
            ["--topology-manager-policy=single-numa-node"],
            [guaranteed("p", 5)],
            "topology manager (single-numa-node, scope container)",
            "the largest NUMA node has 4 CPUs, so 2 are needed in any case",
            id="no NUMA node is large enough",
        ),
        pytest.param(
            ["--cpu-manager-policy-options=full-pcpus-only=true"],
            [guaranteed("p", 3)],
            "CPU manager",
            "3 is not a multiple of 2: full-pcpus-only gives whole cores of 2 threads",
            id="no whole cores",
        ),
        pytest.param(
            ["--cpu-manager-policy-options=full-pcpus-only=true"],
            [guaranteed("x", 14), guaranteed("p", 1)],
            "CPU manager",
            "container app asks for 1 CPU; 0 free CPUs",
            id="the sibling of a reserved CPU is no free one",
        ),
        pytest.param(
            [],
            [guaranteed("x", 10), guaranteed("p", 6)],
            "kubelet",
            "the pod asks for 6 cpu, and 5 is left: other pods ask for 10 of the 15 that are allocatable",
            id="too little is allocatable",
        ),
        pytest.param(
            ["--topology-manager-policy=single-numa-node", *STATIC_MEMORY],
            [guaranteed("p", 2, memory="9Gi")],
            "topology manager (single-numa-node, scope container)",
            "container app asks for 9Gi of memory; 31.90Gi is free, at most 8Gi in one NUMA node",
            id="memory of two NUMA nodes",
        ),
        pytest.param(
            ["--topology-manager-policy=single-numa-node"],
            [guaranteed("x", 3, gpu=1), guaranteed("y", 4, gpu=None), guaranteed("z", 4), guaranteed("p", 2, gpu=1)],
            "topology manager (single-numa-node, scope container)",
            "asks for 1 nvidia.com/gpu; of 2, 1 free, at most 1 in one NUMA node (0 in each of 0-2, 1 in 3)",
            id="the GPU is elsewhere",
        ),
        pytest.param(
            STATIC_MEMORY,
            [guaranteed("wide", 2, memory="12Gi"), guaranteed("p", 2, memory="17Gi")],
            "memory manager",
            "NUMA nodes 0-1 serve memory as one group, and no other group may use them",
            id="memory that only another group may use",
        ),
        pytest.param(
            ["--topology-manager-policy=single-numa-node"],
            [guaranteed("x", 3, gpu=1), guaranteed("y", 4), guaranteed("z", 4), guaranteed("p", 2, gpu=1)],
            "topology manager (single-numa-node, scope container)",
            "each of them alone has a place, but no NUMA nodes suit all of them",
            id="CPUs here, the GPU there",
        ),
    ],
)
def test_what_keeps_a_pod_out(flags: Sequence[str], pods: list[Candidate], manager: str, sentence: str) -> None:
    plan = make_plan(SMALL, settings(*flags), pods)
    found = blockage(plan.refused[0])
    assert plan.refused[-1].candidate.name == "default/p"
    assert found.manager == manager
    assert sentence in because(plan)


def test_a_refused_pod_leaves_nothing_behind() -> None:
    plan = make_plan(SMALL, settings(), [guaranteed("huge", 16), guaranteed("a", 4)])
    assert [each.admitted for each in plan.outcomes] == [False, True]
    assert plan.site.managers.pods == ("a",)
    with pytest.raises(ValueError, match="default/a was admitted"):
        blockage(plan.outcomes[1])


def test_a_plan_starts_from_what_is_held() -> None:
    held = Remembered(cpu=CpuState(parse_list("0-3,8-15"), {"old": {"app": parse_list("4-7")}}))
    plan = make_plan(SMALL, settings(), [guaranteed("old", 4), guaranteed("a", 4), guaranteed("b", 8)], held)
    assert [each.admitted for each in plan.outcomes] == [True, True, False]
    (share,) = shares(plan, plan.outcomes[0])
    assert share.why == "held before"
    assert make_plan(SMALL, settings(), [guaranteed("a", 4)], held).others == ("old",)


def test_pods_that_are_refused_alike_are_one_group() -> None:
    pods = [guaranteed("a", 8), *(guaranteed(f"b{n}", 8) for n in range(3)), guaranteed("c", 4), guaranteed("d", 8)]
    plan = make_plan(SMALL, settings(), pods)
    assert [[each.candidate.pod.metadata.name for each in group] for group in plan.alike] == [["b0", "b1", "b2"], ["d"]]


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=8),
    st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
)
def test_every_cpu_is_in_one_pool_and_with_one_pod(asked: list[tuple[int, bool]], policy: str) -> None:
    pods = [guaranteed(f"p{n}", cpus, gpu=1 if gpu else None) for n, (cpus, gpu) in enumerate(asked)]
    plan = make_plan(SMALL, settings(f"--topology-manager-policy={policy}"), pods)
    seen = 0
    for outcome in plan.outcomes:
        if outcome.admitted:
            (share,) = shares(plan, outcome)
            assert not seen & share.held.cpus
            assert share.held.cpus.bit_count() == outcome.candidate.need.containers[0].cpus
            seen |= share.held.cpus
    for pool in pools(plan.site.managers):
        assert pool.exclusive | pool.shared == pool.cpus
        assert not pool.exclusive & pool.shared
        assert pool.free == pool.shared & ~pool.reserved
        assert pool.exclusive == seen & pool.cpus
