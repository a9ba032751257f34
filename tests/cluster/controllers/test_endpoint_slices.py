"""EndpointSlices show the pods behind a Service."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.controllers.endpoint_slices import TRIGGER, EndpointSliceController
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.kinds import DEPLOYMENT, ENDPOINT_SLICE, NODE, POD, SERVICE
from bayplan.cluster.objects import Object
from bayplan.model.clock import rfc3339

from .stage import START, Stage, template, workload

PORTS = [{"port": 80, "targetPort": 8080}]


@pytest.fixture
def world() -> Stage:
    made = Stage(EndpointSliceController(), GarbageCollector(), hands=False)
    made.patch(NODE, "node-0", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}}, namespace="")
    return made


def pod(world: Stage, name: str, number: int = 1, *, ready: bool = True, **spec: Any) -> Object:
    content = {**template()["spec"], "nodeName": "node-0", **spec}
    made = world.create(POD, name, content, labels={"app": "web"})
    address = f"10.0.{number // 250}.{number % 250}"
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(world.now)}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    world.set_status(made, status)
    world.wait(0.1)
    return world.server.get(POD, "default", name)


def slices(world: Stage) -> list[Object]:
    return [*world.store.objects(ENDPOINT_SLICE, "default")]


def endpoints(world: Stage) -> list[dict[str, Any]]:
    return [entry for one in slices(world) for entry in one.sections["endpoints"].plain() or ()]


def test_a_service_without_pods_has_one_empty_slice(world: Stage) -> None:
    service = world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS}, labels={"team": "a"})
    (one,) = slices(world)
    assert one.name.startswith("web-")
    assert one.meta.labels == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert one.meta.annotations == {TRIGGER: rfc3339(START)}
    owner = one.meta.controller
    assert owner is not None
    assert (owner.kind, owner.uid) == ("Service", service.uid)
    assert {name: section.plain() for name, section in one.sections.items()} == {
        "addressType": "IPv4",
        "endpoints": None,
        "ports": None,
    }


def test_a_pod_is_shown_with_its_address_node_zone_and_conditions(world: Stage) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    first = slices(world)[0].name
    made = pod(world, "a")
    (one,) = slices(world)
    assert one.name == first
    assert one.sections["ports"].plain() == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert one.sections["endpoints"].plain() == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": made.uid},
            "nodeName": "node-0",
            "zone": "z",
        }
    ]


@pytest.mark.parametrize(
    ("ready", "deleted", "published", "expected"),
    [
        pytest.param(True, False, False, (True, True, False), id="a ready pod serves"),
        pytest.param(False, False, False, (False, False, False), id="an unready pod is shown as such"),
        pytest.param(True, True, False, (False, True, True), id="one that is going still serves but is not ready"),
        pytest.param(False, False, True, (True, False, False), id="all are ready where unready ones are published"),
    ],
)
def test_conditions(world: Stage, ready: bool, deleted: bool, published: bool, expected: tuple[bool, ...]) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS, "publishNotReadyAddresses": published})
    pod(world, "a", ready=ready)
    if deleted:
        world.server.delete(POD, "default", "a")
        world.wait(0.1)
    conditions = endpoints(world)[0]["conditions"]
    assert (conditions["ready"], conditions["serving"], conditions["terminating"]) == expected


def test_pods_come_and_go(world: Stage) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    for number, name in enumerate("abc"):
        pod(world, name, number + 1)
    assert [entry["targetRef"]["name"] for entry in endpoints(world)] == ["a", "b", "c"]
    world.patch(POD, "b", {"metadata": {"labels": {"app": "other"}}})
    world.set_status(world.server.get(POD, "default", "c"), {"phase": "Failed"})
    world.wait(0.1)
    assert [entry["targetRef"]["name"] for entry in endpoints(world)] == ["a"]
    world.server.delete(SERVICE, "default", "web")
    world.settle()
    assert slices(world) == []


def test_a_slice_holds_a_hundred(world: Stage) -> None:
    for number in range(150):
        pod(world, f"p{number:03}", number + 1)
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    assert sorted(len(one.sections["endpoints"].plain()) for one in slices(world)) == [50, 100]
    names = {one.name for one in slices(world)}
    pod(world, "late", 200)
    assert sorted(len(one.sections["endpoints"].plain()) for one in slices(world)) == [51, 100]
    assert {one.name for one in slices(world)} == names


def test_pods_that_name_a_port_differently_have_slices_of_their_own(world: Stage) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": ports})
    for number in (1, 2):
        container = {"name": "main", "image": "x", "ports": [{"name": "http", "containerPort": 8000 + number}]}
        pod(world, f"p{number}", number, containers=[container])
    assert sorted(one.sections["ports"].plain()[0]["port"] for one in slices(world)) == [8001, 8002]


def test_a_headless_service_is_marked_and_its_pods_have_their_names(world: Stage) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "clusterIP": "None"})
    pod(world, "a", hostname="first", subdomain="web")
    assert slices(world)[0].meta.labels["service.kubernetes.io/headless"] == ""
    assert endpoints(world)[0]["hostname"] == "first"


def test_what_others_do_to_a_slice_is_put_right(world: Stage) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    pod(world, "a")
    world.patch(ENDPOINT_SLICE, slices(world)[0].name, {"endpoints": []})
    assert len(endpoints(world)) == 1
    world.server.delete(ENDPOINT_SLICE, "default", slices(world)[0].name)
    world.settle()
    assert len(endpoints(world)) == 1


def test_a_service_without_a_selector_has_none(world: Stage) -> None:
    world.create(SERVICE, "web", {"ports": PORTS})
    world.create(SERVICE, "away", {"type": "ExternalName", "externalName": "a.b", "selector": {"app": "web"}})
    assert slices(world) == []


def test_a_pod_on_a_node_that_is_gone_is_left_out(world: Stage) -> None:
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    pod(world, "a", nodeName="nowhere")
    assert endpoints(world) == []
    assert world.events("web")[-1] == (
        "FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service default/web: "
        "skipping Pod a for Service default/web: Node nowhere Not Found"
    )


def test_a_rollout_keeps_the_number_of_endpoints() -> None:
    world = Stage(EndpointSliceController())
    world.create(SERVICE, "web", {"selector": {"app": "web"}, "ports": PORTS})
    world.create(DEPLOYMENT, "web", workload(3))
    assert world.settle() == 0
