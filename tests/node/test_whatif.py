"""What would let a refused pod in: every suggestion does, and none nearer of its kind would."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bayplan.model.pods import Container, Pod
from bayplan.node.admission import Remembered
from bayplan.node.cpu.state import CpuState
from bayplan.node.plan import Candidate, Plan, candidate, make_plan, site_of
from bayplan.node.sets import parse_list
from bayplan.node.whatif import Ask, Change, Evict, Kind, Order, Setting, situation, suggestions
from bayplan.testing import pod
from tests.node.planned_pods import GIB, SMALL, guaranteed, settings

SINGLE = "--topology-manager-policy=single-numa-node"
STATIC_MEMORY = ("--memory-manager-policy=Static", "--reserved-memory=0:memory=100Mi")


def told(plan: Plan, most: int = 9) -> list[str]:
    return [str(change) for change in suggestions(situation(plan, plan.refused[0]), most)]


def many_small(count: int, cpus: int) -> list[Candidate]:
    return [guaranteed(f"x{n}", cpus) for n in range(count)]


@pytest.mark.parametrize(
    ("flags", "pods", "expected"),
    [
        pytest.param(
            ["--cpu-manager-policy-options=full-pcpus-only=true"],
            [guaranteed("p", 3)],
            [
                "container app asks for 2 CPUs instead of 3",
                "container app asks for 4 CPUs instead of 3",
                "container app asks for 2500m cpu instead of 3, and so runs on the shared CPUs",
                "the kubelet has --cpu-manager-policy-options=full-pcpus-only=false instead of true",
            ],
            id="three CPUs of cores with two",
        ),
        pytest.param(
            [SINGLE],
            [guaranteed("p", 6)],
            [
                "container app asks for 4 CPUs instead of 6",
                "container app asks for 5500m cpu instead of 6, and so runs on the shared CPUs",
                "the kubelet has --topology-manager-policy=restricted instead of single-numa-node",
            ],
            id="more than a NUMA node has",
        ),
        pytest.param(
            ["--topology-manager-policy=restricted"],
            [*many_small(4, 3), guaranteed("p", 2)],
            [
                "container app asks for 1 CPU instead of 2",
                "container app asks for 1500m cpu instead of 2, and so runs on the shared CPUs",
                "the kubelet has --topology-manager-policy=best-effort instead of restricted",
                "the kubelet has --cpu-manager-policy-options=align-by-socket=true instead of false",
                *(f"default/x{n} goes (3 CPUs of its own)" for n in range(4)),
            ],
            id="fragments",
        ),
        pytest.param(
            ["--reserved-cpus=0-3"],
            [guaranteed("x", 8), guaranteed("p", 5)],
            [
                "container app asks for 4 CPUs instead of 5",
                "the kubelet has --reserved-cpus=0-2 instead of 0-3",
                "default/x goes (8 CPUs of its own)",
            ],
            id="too many are reserved",
        ),
        pytest.param(
            [SINGLE, *STATIC_MEMORY],
            [guaranteed("p", 2, memory="9Gi")],
            [
                "container app asks for 8Gi memory instead of 9Gi",
                "the kubelet has --topology-manager-policy=best-effort instead of single-numa-node",
                "the kubelet has --memory-manager-policy=None instead of Static",
            ],
            id="memory of two NUMA nodes",
        ),
        pytest.param(
            [],
            [guaranteed("x", 10), candidate(pod("p").requests(cpu=6).view())],
            ["container p asks for 5 CPUs instead of 6", "default/x goes (10 CPUs of its own)"],
            id="too much in all, of the shared CPUs",
        ),
        pytest.param(
            [SINGLE],
            [guaranteed("p", 2, gpu=2)],
            [
                "container app asks for 1 nvidia.com/gpu instead of 2",
                "the kubelet has --topology-manager-policy=best-effort instead of single-numa-node",
            ],
            id="GPUs of two NUMA nodes",
        ),
    ],
)
def test_what_would_let_a_pod_in(flags: list[str], pods: list[Candidate], expected: list[str]) -> None:
    assert told(make_plan(SMALL, settings(*flags), pods)) == expected


def test_a_pod_that_comes_too_late_could_come_earlier() -> None:
    """Two CPUs are free beside x and beside y; had they shared a NUMA node, three would be free in one."""
    pods = [guaranteed("x", 2), guaranteed("y", 2), guaranteed("p", 4), guaranteed("q", 4), guaranteed("late", 3)]
    plan = make_plan(SMALL, settings(SINGLE), pods)
    before = "it comes before default/x, default/y, default/p, default/q: all of them fit in this order"
    assert before in told(plan)


def test_pods_of_a_state_file_may_go_too() -> None:
    held = Remembered(cpu=CpuState(parse_list("0-3"), {"old": {"app": parse_list("4-15")}}))
    plan = make_plan(SMALL, settings(), [guaranteed("p", 8)], held)
    assert "pod old goes (12 CPUs of its own)" in told(plan)


def test_a_pair_goes_where_no_single_pod_will_do() -> None:
    plan = make_plan(SMALL, settings(), [*many_small(5, 3), guaranteed("p", 6)])
    (pair, *_) = [each for each in suggestions(situation(plan, plan.refused[0]), 50) if isinstance(each, Evict)]
    assert str(pair) == "default/x0 and default/x1 go (6 CPUs of their own)"


def test_the_nearest_of_every_kind_comes_before_a_second_of_one() -> None:
    plan = make_plan(SMALL, settings("--topology-manager-policy=restricted"), [*many_small(4, 3), guaranteed("p", 2)])
    kinds = [each.kind for each in suggestions(situation(plan, plan.refused[0]), 4)]
    assert kinds == [Kind.LOWER, Kind.SHARE, Kind.SETTING, Kind.EVICT]
    assert suggestions(situation(plan, plan.refused[0]), 0) == []


def test_containers_are_lowered_together_where_one_is_not_enough() -> None:
    wanted = pod("p").requests(cpu=8, memory="1Gi").limits(cpu=8, memory="1Gi").container("second")
    both = candidate(wanted.requests(cpu=8, memory="1Gi").limits(cpu=8, memory="1Gi").view())
    plan = make_plan(SMALL, settings(), [guaranteed("x", 9), both])
    assert told(plan)[0] == "container p asks for 3 CPUs instead of 8 and container second asks for 3 CPUs instead of 8"


# --- for any pods


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    topology = draw(st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]))
    flags = [
        f"--topology-manager-policy={topology}",
        f"--topology-manager-scope={draw(st.sampled_from(['container', 'pod']))}",
    ]
    flags += draw(st.sampled_from([[], ["--cpu-manager-policy-options=full-pcpus-only=true"]]))
    flags += draw(st.sampled_from([[], [*STATIC_MEMORY]]))
    flags += draw(st.sampled_from([[], ["--reserved-cpus=0-2"]]))
    shapes = draw(
        st.lists(
            st.tuples(st.integers(1, 10), st.integers(1, 10), st.sampled_from([None, 1, 2])), min_size=1, max_size=6
        )
    )
    pods = [guaranteed(f"p{n}", cpus, f"{memory}Gi", gpu) for n, (cpus, memory, gpu) in enumerate(shapes)]
    return make_plan(SMALL, settings(*flags), pods)


def admitted_by_hand(plan: Plan, at: int, change: Change) -> bool:
    """The change made to the input, and everything planned from the beginning."""
    earlier = [each.candidate for each in plan.outcomes[:at] if each.admitted]
    wanted = plan.outcomes[at].candidate
    configuration = plan.configuration
    if isinstance(change, Evict):
        site = site_of(plan.machine, configuration, plan.start)
        for each in earlier:
            site.admit(each)
        for uid in change.pods:
            site.evict(uid)
        return site.admit(wanted).admitted
    if isinstance(change, Order):
        known = {each.need.uid: each for each in (*earlier, wanted)}
        again = make_plan(plan.machine, configuration, [known[uid] for uid in change.order], plan.start)
        return not again.refused and {*known} == {*change.order}
    if isinstance(change, Setting):
        return change.admits(situation(plan, plan.outcomes[at]))
    assert isinstance(change, Ask)
    changed = candidate(_asking(wanted.pod, change.resource, change.amounts["app"]))
    return not make_plan(plan.machine, configuration, [*earlier, changed], plan.start).refused


def _asking(wanted: Pod, resource: str, amount: str) -> Pod:
    def container(each: Container) -> Container:
        asked = {**each.resources.limits, resource: amount}
        resources = msgspec.structs.replace(each.resources, limits=asked, requests=asked)
        return msgspec.structs.replace(each, resources=resources)

    spec = msgspec.structs.replace(wanted.spec, containers=tuple(map(container, wanted.spec.containers)))
    return msgspec.structs.replace(wanted, spec=spec)


@hypothesis_settings(max_examples=25, deadline=None)
@given(plans())
def test_every_suggestion_lets_the_pod_in(plan: Plan) -> None:
    for at, outcome in enumerate(plan.outcomes):
        if not outcome.admitted:
            for change in suggestions(situation(plan, outcome), 50):
                assert admitted_by_hand(plan, at, change), str(change)


@hypothesis_settings(max_examples=20, deadline=None)
@given(plans())
def test_no_smaller_change_of_the_request_would_do(plan: Plan) -> None:
    for outcome in plan.refused:
        now = situation(plan, outcome)
        asked = outcome.candidate.need.containers[0].cpus
        admitting = [
            n
            for n in range(1, min(16, 2 * asked) + 1)
            if n != asked and now.admits(_asking(now.wanted.pod, "cpu", str(n)))
        ]
        expected = {
            max((n for n in admitting if n < asked), default=None),
            min((n for n in admitting if n > asked), default=None),
        }
        changes = [each for each in suggestions(now, 50) if isinstance(each, Ask) and each.resource == "cpu"]
        found = {int(each.amounts["app"]) for each in changes if each.kind is not Kind.SHARE}
        assert found == expected - {None}


@hypothesis_settings(max_examples=15, deadline=None)
@given(plans())
def test_no_smaller_reduction_of_memory_would_do(plan: Plan) -> None:
    for outcome in plan.refused:
        now = situation(plan, outcome)
        changes = [each for each in suggestions(now, 50) if isinstance(each, Ask) and each.resource == "memory"]
        asked = outcome.candidate.need.containers[0].memory["memory"]
        most = max((asked - each.difference for each in changes), default=0)
        for quarters in range(1, 4 * asked // GIB):
            if quarters * GIB // 4 > most:
                assert not now.admits(_asking(now.wanted.pod, "memory", f"{quarters * 256}Mi"))
