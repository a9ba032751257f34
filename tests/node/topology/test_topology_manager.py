"""The topology manager: which settings a machine can have, and how a pod goes through its providers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Self

import pytest

from bayplan.node.errors import AllocationError, PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.needs import ContainerNeed, PodNeed
from bayplan.node.policies import TopologyPolicies
from bayplan.node.topology.hint import NO_HINT, Hint, Hints
from bayplan.node.topology.manager import NOT_ALIGNED, Refusal, TopologyManager
from bayplan.node.topology.merge import Why

POD = PodNeed("p", (ContainerNeed("a"), ContainerNeed("b")))


def nodes(count: int, distances: bool = False) -> list[NumaNode]:
    row = dict.fromkeys(range(count), 20) if distances else {}
    return [NumaNode(each, 0, distances=row) for each in range(count)]


def manager(policy: str, scope: str = "container", count: int = 2, **options: str) -> TopologyManager:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return TopologyManager(TopologyPolicies(policy, scope, named), nodes(count, distances=True))


class Scripted:
    """Gives the hints that it is told to, and writes down what it is asked to allocate."""

    def __init__(self, hints: Mapping[str, Hints], fails_at: str = "") -> None:
        self.script = hints
        self.fails_at = fails_at
        self.allocated: tuple[tuple[str, Hint], ...] = ()

    def hints(self, pod: PodNeed, container: ContainerNeed) -> Hints:
        return self.script.get(container.name)

    def pod_hints(self, pod: PodNeed) -> Hints:
        return self.script.get("pod")

    def allocate(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> None:
        if container.name == self.fails_at:
            raise AllocationError("out of luck")
        self.allocated = (*self.allocated, (container.name, affinity))

    def remove(self, uid: str, container: str) -> None:
        raise NotImplementedError

    def fork(self) -> Self:
        return copy.copy(self)


def on(*masks: int, preferred: bool = True) -> Hints:
    return {"cpu": [Hint(mask, preferred) for mask in masks]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"prefer-closest": "true"}, 'unknown Topology Manager Policy option: "prefer-closest"', id="unknown"
        ),
        pytest.param(
            {"prefer-closest-numa-nodes": "yes"},
            'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "yes": invalid syntax',
            id="neither true nor false",
        ),
        pytest.param(
            {"max-allowable-numa-nodes": "7"},
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
            id="a limit below the default",
        ),
        pytest.param(
            {"max-allowable-numa-nodes": "many"},
            'unable to convert policy option to integer "max-allowable-numa-nodes": '
            'strconv.Atoi: parsing "many": invalid syntax',
            id="a limit that is no number",
        ),
        pytest.param(
            {"max-allowable-numa-nodes": "9" * 20},
            'unable to convert policy option to integer "max-allowable-numa-nodes": '
            f'strconv.Atoi: parsing "{"9" * 20}": value out of range',
            id="a limit beyond all numbers",
        ),
        pytest.param(
            {"max-allowable-numa-nodes": "9" * 5000},
            'unable to convert policy option to integer "max-allowable-numa-nodes": '
            f'strconv.Atoi: parsing "{"9" * 5000}": value out of range',
            id="a limit of more digits than Python would read",
        ),
        pytest.param(
            {"max-allowable-numa-nodes": "+"},
            'unable to convert policy option to integer "max-allowable-numa-nodes": '
            'strconv.Atoi: parsing "+": invalid syntax',
            id="a sign alone",
        ),
        pytest.param(
            {'"': "true"},
            r'unknown Topology Manager Policy option: "\""',
            id="names are quoted as Go quotes them",
        ),
    ],
)
def test_options_are_refused_in_the_kubelets_words(options: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        TopologyManager(TopologyPolicies("restricted", options=options), nodes(2))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("policies", "count", "message"),
    [
        pytest.param(
            TopologyPolicies("restricted"),
            9,
            "unsupported on machines with more than 8 NUMA Nodes",
            id="too many nodes",
        ),
        pytest.param(TopologyPolicies("strict"), 2, 'unknown policy: "strict"', id="an unknown policy"),
        pytest.param(TopologyPolicies("restricted", "node"), 2, 'unknown scope: "node"', id="an unknown scope"),
        pytest.param(
            TopologyPolicies("restricted", options={"prefer-closest-numa-nodes": "1"}),
            2,
            "cannot discover NUMA topology: error getting NUMA distances from cadvisor",
            id="closeness without distances",
        ),
    ],
)
def test_a_machine_cannot_have_every_policy(policies: TopologyPolicies, count: int, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        TopologyManager(policies, nodes(count))
    assert caught.value.message == message


def test_policy_none_goes_with_any_machine_and_looks_at_no_option() -> None:
    TopologyManager(TopologyPolicies("none", "node", {"whatever": "x"}), nodes(20))


def test_the_limit_of_nodes_can_be_raised() -> None:
    wide = manager("restricted", count=9, max_allowable_numa_nodes="9")
    assert wide.decide([on(1 << 8)])[0].hint == Hint(1 << 8, True)


@pytest.mark.parametrize(
    ("policy", "hints", "best", "admitted"),
    [
        pytest.param("none", on(1), NO_HINT, True, id="none decides nothing"),
        pytest.param("best-effort", on(1, preferred=False), Hint(1, False), True, id="best-effort admits anything"),
        pytest.param("restricted", on(1, preferred=False), Hint(1, False), False, id="restricted wants the preferred"),
        pytest.param("restricted", on(3), Hint(3, True), True, id="restricted takes several nodes if preferred"),
        pytest.param("single-numa-node", on(3), Hint(None, False), False, id="a single node is not two"),
        pytest.param("single-numa-node", on(2), Hint(2, True), True, id="a single node"),
        pytest.param("single-numa-node", None, Hint(None, True), True, id="the whole machine is any node"),
    ],
)
def test_policies(policy: str, hints: Hints, best: Hint, admitted: bool) -> None:
    merged, admits = manager(policy).decide([hints])
    assert (merged.hint, admits) == (best, admitted)


def test_in_scope_container_each_container_has_its_own_affinity() -> None:
    cpu = Scripted({"a": on(1), "b": on(2)})
    admission = manager("restricted").admit(POD, {"cpu": cpu})
    assert admission.admitted
    assert admission.affinities == {"a": Hint(1, True), "b": Hint(2, True)}
    assert cpu.allocated == (("a", Hint(1, True)), ("b", Hint(2, True)))


def test_in_scope_pod_one_affinity_is_for_all() -> None:
    cpu = Scripted({"pod": on(2)})
    admission = manager("restricted", "pod").admit(POD, {"cpu": cpu})
    assert admission.affinities == {"a": Hint(2, True), "b": Hint(2, True)}
    assert [(choice.container, choice.best) for choice in admission.choices] == [("", Hint(2, True))]


def test_under_none_everyone_allocates_without_an_affinity() -> None:
    cpu = Scripted({"a": on(1)})
    admission = manager("none").admit(POD, {"cpu": cpu})
    assert cpu.allocated == (("a", NO_HINT), ("b", NO_HINT))
    assert admission.choices == ()


def test_a_refused_container_ends_the_attempt_and_the_story_is_told() -> None:
    topology = manager("restricted")
    cpu, memory = Scripted({"a": on(1), "b": on(1)}), Scripted({"a": on(1), "b": on(2)})
    admission = topology.admit(POD, {"cpu": cpu, "memory": memory})
    assert admission.refusal == NOT_ALIGNED
    assert admission.affinities == {"a": Hint(1, True), "b": NO_HINT}
    last = admission.choices[-1]
    assert (last.container, last.hints, last.admitted, last.why) == (
        "b",
        {"cpu": on(1), "memory": on(2)},
        False,
        Why.NOTHING_SHARED,
    )
    assert [name for name, _ in memory.allocated] == ["a"]


def test_a_failed_allocation_names_container_and_provider_and_what_came_before_stays() -> None:
    cpu, memory = Scripted({}), Scripted({}, fails_at="b")
    admission = manager("best-effort").admit(POD, {"cpu": cpu, "memory": memory})
    refusal = admission.refusal
    assert refusal is not None
    assert refusal == Refusal(
        "UnexpectedAdmissionError",
        "Allocate failed due to out of luck, which is unexpected",
        "b",
        "memory",
        refusal.error,
    )
    assert [name for name, _ in cpu.allocated] == ["a", "b"]
    assert admission.affinities["b"] == Hint(3, True)


def test_a_fork_decides_for_itself_and_a_pod_can_be_forgotten() -> None:
    topology = manager("restricted")
    fork = topology.fork()
    fork.admit(POD, {"cpu": Scripted({"a": on(1), "b": on(1)})})
    assert (topology.affinity("p", "a"), fork.affinity("p", "a")) == (NO_HINT, Hint(1, True))
    fork.forget("p")
    assert fork.affinity("p", "a") == NO_HINT
