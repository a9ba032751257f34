"""The embedded scheduler with NodeTopology: what it foretells is what the kubelets say."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.scheduler import SchedulerController
from bayplan.cluster.embedded.scheduler_file import parse_configuration
from bayplan.cluster.kinds import NODE, POD, PRIORITY_CLASS
from bayplan.model.clock import SECOND
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from bayplan.scheduling.plugins.node_topology import NodeTopology
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from tests.cluster.kubelet.machines import MEMORY, RESTRICTED, STATIC, TWO_NODES, WHOLE_CORES, Doc, asks, gpu
from tests.cluster.kubelet.stage import EXACT, START, Stage

SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      filter: {enabled: [{name: NodeTopology}]}
"""
SINGLE = {**RESTRICTED, "topologyManagerPolicy": "single-numa-node"}
REFUSALS = ("TopologyAffinityError", "SMTAlignmentError", "UnexpectedAdmissionError")


class Yard(Stage):
    """A stage with a scheduler that has the plugin; its nodes take pods at once."""

    def __init__(self) -> None:
        self.scheduler = SchedulerController(parse_configuration("numa.yaml", SCHEDULER))
        super().__init__(EXACT, more=[self.scheduler])

    def machine(self, name: str, configuration: Doc | None, machine: str = TWO_NODES) -> None:
        said = {} if configuration is None else {CONFIGURATION: msgspec.json.encode(configuration).decode()}
        doc: Doc = {"metadata": {"name": name, "annotations": {MACHINE: machine, **said}}}
        self.world.server.create(NODE, "", doc)
        self.world.settle()
        self.change_node(name, lambda doc: doc["spec"].update(taints=[]))

    def change_node(self, name: str, change: Any) -> None:
        doc = self.world.server.get(NODE, "", name).doc()
        change(doc)
        self.world.server.update(NODE, "", name, doc)
        self.world.settle()

    def comes(self, name: str, *containers: Doc, node: str = "", **spec: Any) -> None:
        self.pod(name, nodeName=node, containers=[*containers], **spec)

    def where(self) -> dict[str, str]:
        """For each pod that is not over its node, else why it is."""
        views = {each.name: each.view(Pod) for each in self.world.store.objects(POD)}
        return {name: pod.status.reason if pod.is_terminal else pod.spec.node_name for name, pod in views.items()}

    def why(self, name: str) -> str:
        scheduled = condition(self.item(name).view(Pod).status.conditions, "PodScheduled")
        assert scheduled is not None
        return scheduled.message.partition(" no new claims")[0]


def yard(configuration: Doc | None = SINGLE, *nodes: str) -> Yard:
    found = Yard()
    for name in nodes or ("a",):
        found.machine(name, configuration)
    return found


# --- what comes of it


def test_a_pod_that_would_be_refused_waits_and_is_told_why() -> None:
    stage = yard()
    for name, cpus in (("first", "5"), ("second", "5"), ("third", "4")):
        stage.comes(name, asks(cpus))
    stage.to(5)

    assert stage.where() == {"first": "a", "second": "a", "third": ""}
    assert stage.why("third") == "0/1 nodes are available: 1 node(s) would refuse the pod: TopologyAffinityError."


def test_it_goes_where_it_is_taken() -> None:
    stage = yard(SINGLE, "a", "b")
    for name in ("p0", "p1", "p2", "p3", "p4"):
        stage.comes(name, asks("5"))
    stage.to(5)

    assert sorted(stage.where().values()) == ["", "a", "a", "b", "b"]


def test_pods_that_the_kubelet_has_not_taken_yet_count_as_if_it_had() -> None:
    stage = yard(SINGLE, "n0")
    silence(stage, stop=True)
    for name, cpus in (("first", "5"), ("second", "5"), ("third", "4")):
        stage.comes(name, asks(cpus))
    stage.to(5)
    assert stage.where() == {"first": "n0", "second": "n0", "third": ""}
    silence(stage, stop=False)
    stage.to(10)

    assert [stage.status(name).phase for name in ("first", "second", "third")] == ["Running", "Running", "Pending"]


def test_it_is_tried_again_when_a_pod_goes() -> None:
    stage = yard()
    for name, cpus in (("first", "5"), ("second", "5"), ("third", "4")):
        stage.comes(name, asks(cpus))
    stage.to(5)
    stage.delete("first")
    stage.to(60)

    assert stage.where() == {"second": "a", "third": "a"}


def test_it_is_tried_again_when_the_kubelet_is_configured_otherwise() -> None:
    stage = yard()
    stage.comes("wide", asks("9"))
    stage.to(5)
    assert stage.where() == {"wide": ""}
    said = msgspec.json.encode(RESTRICTED).decode()
    stage.change_node("a", lambda doc: doc["metadata"]["annotations"].update({CONFIGURATION: said}))
    stage.to(60)

    assert stage.where() == {"wide": "a"}


def test_it_is_tried_again_when_init_containers_have_given_their_memory_back() -> None:
    stage = yard(MEMORY)
    for name in ("first", "second"):
        loads = [asks("1", "10Gi", "load")]
        stage.pod(name, {"run-for.load": "30s"}, nodeName="", initContainers=loads, containers=[asks("1", "2Gi")])
    stage.to(10)
    stage.comes("third", asks("1", "8Gi"))
    stage.to(20)
    assert stage.where() == {"first": "a", "second": "a", "third": ""}
    stage.to(100)

    assert stage.where()["third"] == "a"


def test_pods_that_run_where_nobody_wrote_down_what_they_hold_keep_others_away() -> None:
    stage = yard({})
    stage.comes("first", asks("2"))
    stage.to(5)
    said = msgspec.json.encode(STATIC).decode()
    stage.change_node("a", lambda doc: doc["metadata"]["annotations"].update({CONFIGURATION: said}))
    stage.comes("second", asks("2"))
    stage.to(10)

    assert stage.why("second").endswith("1 node(s) would refuse the pod: UnexpectedAdmissionError.")


def test_a_more_important_pod_evicts_where_that_helps_and_only_there() -> None:
    stage = yard()
    for name in ("first", "second"):
        stage.comes(name, asks("5"))
    stage.to(5)
    stage.world.server.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 10})
    stage.comes("wide", asks("9"), priorityClassName="high")
    stage.comes("narrow", asks("6"), priorityClassName="high")
    stage.to(60)
    where = stage.where()

    assert (where["wide"], where["narrow"], len(where)) == ("", "a", 3)


# --- the same as the kubelet

MACHINES = [
    f"layout: {{{layout}}}\ndevices: [{', '.join(devices)}]"
    for layout in (
        "sockets: 2, coresPerSocket: 4, threadsPerCore: 2, memoryPerNode: 16Gi",
        "sockets: 1, nodesPerSocket: 2, coresPerSocket: 6, threadsPerCore: 2, memoryPerNode: 8Gi",
        "sockets: 2, nodesPerSocket: 2, coresPerSocket: 6, threadsPerCore: 1, memoryPerNode: 6Gi",
    )
    for devices in (
        [f"{{resource: nvidia.com/gpu, id: gpu-{at}, nodes: '{node}'}}" for at, node in enumerate(places)]
        for places in ("0011", "1111")
    )
]
CONFIGURATIONS = st.builds(
    lambda base, policy, scope: {**base, "topologyManagerPolicy": policy, "topologyManagerScope": scope},
    st.sampled_from(
        [STATIC, {}, MEMORY, WHOLE_CORES, {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}]
    ),
    st.sampled_from(["single-numa-node", "restricted", "best-effort", "none"]),
    st.sampled_from(["container", "pod"]),
)
NODES = st.lists(st.tuples(st.sampled_from(MACHINES), st.none() | CONFIGURATIONS), min_size=1, max_size=2)
SIZES = st.tuples(
    st.sampled_from(["5", "4", "3", "2", "1", "500m"]),
    st.sampled_from(["256Mi", "1Gi", "4Gi", "7Gi"]),
    st.sampled_from(["0", "0", "0", "1"]),
)
PODS = st.one_of(st.lists(SIZES, min_size=1, max_size=1), st.lists(SIZES, min_size=2, max_size=3))
"""An app container, a second one, and an init container."""
COMING = st.lists(PODS, min_size=1, max_size=4)
STEPS = st.lists(st.one_of(COMING, COMING, st.integers(0, 9), st.booleans()), min_size=1, max_size=8)
"""Pods come together, one of those that are there goes, or the first node's kubelet stops (True) and starts again."""
STOPPED = "stopped-at=2026-01-01T00:00:00Z"


def spec_of(sizes: list[tuple[str, str, str]]) -> Doc:
    made = [asks(cpu, memory, f"c{at}", **gpu(count)) for at, (cpu, memory, count) in enumerate(sizes)]
    return {"containers": made[:2], "initContainers": made[2:]}


def foretold(stage: Yard, name: str) -> dict[str, str]:
    """By node, what the plugin says of a pod that is not placed; empty where it has nothing against it."""
    pod = PodInfo(stage.item(name).view(Pod))
    objects = [*(each.view(Node) for each in stage.world.store.objects(NODE))]
    state = ClusterState([*objects, *(each.view(Pod) for each in stage.world.store.objects(POD))])
    found = NodeTopology().filter(pod, state)
    said = {node.name: found.check(node) if found else None for node in state.nodes}
    return {name: refusal.reasons[0].rpartition(" ")[2] if refusal else "" for name, refusal in said.items()}


def check_forced(stage: Yard, name: str, doc: Doc) -> None:
    """Whoever is sent to a node past the scheduler meets there what was foretold."""
    for node, reason in foretold(stage, name).items():
        forced = f"{name}-on-{node}"
        stage.pod(forced, **{**doc, "nodeName": node})
        now = (stage.world.now - START) / SECOND
        stage.to(now + 2)
        status = stage.status(forced)
        assert (status.reason if status.reason in REFUSALS else "") == reason, (node, doc)
        stage.delete(forced, grace=0)
        stage.to(now + 4)


def silence(stage: Yard, *, stop: bool) -> None:
    """Pods that are bound meanwhile are taken when it speaks again."""
    said = {"bayplan.dev/kubelet": STOPPED} if stop else {}
    keep = (MACHINE, CONFIGURATION)

    def change(doc: Doc) -> None:
        meta = doc["metadata"]
        meta["annotations"] = {name: text for name, text in meta["annotations"].items() if name in keep} | said

    stage.change_node("n0", change)


@settings(max_examples=40, deadline=None)
@given(NODES, STEPS, PODS)
def test_nobody_it_places_is_refused_and_whom_it_refuses_the_kubelet_refuses(
    nodes: list[tuple[str, Doc | None]], steps: list[Any], last: list[tuple[str, str, str]]
) -> None:
    stage = Yard()
    for number, (machine, configuration) in enumerate(nodes):
        stage.machine(f"n{number}", configuration, machine)
    there: list[str] = []
    for number, step in enumerate(steps):
        if isinstance(step, bool):
            silence(stage, stop=step)
        elif isinstance(step, int):
            if there:
                stage.delete(there.pop(step % len(there)))
        else:
            for at, sizes in enumerate(step):
                there.append(f"p{number}-{at}")
                stage.pod(there[-1], **spec_of(sizes), nodeName="")
        stage.to(number * 3)
        assert not {*stage.where().values()} & {*REFUSALS}
    silence(stage, stop=False)
    stage.to(len(steps) * 3)
    assert not {*stage.where().values()} & {*REFUSALS}
    doc = spec_of(last)
    stage.pod("last", **doc, nodeName="", schedulerName="nobody")
    check_forced(stage, "last", doc)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(MACHINES), CONFIGURATIONS, st.lists(SIZES.map(lambda size: [size]) | PODS, min_size=3, max_size=9)
)
def test_those_who_wait_for_a_kubelet_are_all_taken_when_it_speaks_again(
    machine: str, configuration: Doc, pods: list[list[tuple[str, str, str]]]
) -> None:
    stage = Yard()
    stage.machine("n0", configuration, machine)
    silence(stage, stop=True)
    for number, sizes in enumerate(pods):
        stage.pod(f"p{number}", **spec_of(sizes), nodeName="")
    stage.to(3)
    silence(stage, stop=False)
    stage.to(6)

    assert not {*stage.where().values()} & {*REFUSALS}
