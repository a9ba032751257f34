"""Quotas: what is charged, what is refused, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.quota import usage
from bayplan.cluster.embedded.admission.plugins.quota_usage import kinds_counted_in
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.errors import Forbidden
from bayplan.model.quantity import parse
from tests.cluster.admission.plugin_bench import container, pod, submit, thing

NOW = parse_rfc3339("2026-01-01T00:01:00Z")


def quota(hard: Doc, used: Doc | None = None, name: str = "q", **spec: Any) -> Doc:
    used = dict.fromkeys(hard, "0") | (used or {})
    return thing("ResourceQuota", name, spec={"hard": hard, **spec}, status={"hard": hard, "used": used})


def asking(name: str = "c", limits: Doc | None = None, **requests: str) -> Doc:
    return container(name, resources={"requests": requests} | ({"limits": limits} if limits else {}))


TWO_GPUS = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
ALL_GPUS = {"deviceClassName": "gpu", "allocationMode": "All"}


@pytest.mark.parametrize(
    ("subject", "budget", "used"),
    [
        pytest.param(pod(), {"pods": "2"}, {"pods": "1"}, id="a pod is a pod"),
        pytest.param(pod(), {"count/pods": "2", "pods": "2"}, {"count/pods": "1", "pods": "1"}, id="under both names"),
        pytest.param(
            pod(asking(cpu="500m", memory="1Gi"), asking("d", cpu="250m", memory="512Mi")),
            {"cpu": "1", "requests.cpu": "1", "requests.memory": "2Gi"},
            {"cpu": "750m", "requests.cpu": "750m", "requests.memory": "1536Mi"},
            id="requests add up and keep their suffix",
        ),
        pytest.param(
            pod(asking(cpu="1", limits={"cpu": "2"}), runtimeClassName="kata"),
            {"requests.cpu": "4", "limits.cpu": "4"},
            {"requests.cpu": "1250m", "limits.cpu": "2250m"},
            id="overhead counts",
        ),
        pytest.param(
            pod(container(), resources={"requests": {"cpu": "3"}}),
            {"requests.cpu": "4"},
            {"requests.cpu": "3"},
            id="the pod's own resources win and are enough",
        ),
        pytest.param(
            pod(container(resources={"requests": {"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}})),
            {"requests.nvidia.com/gpu": "4", "hugepages-2Mi": "1Gi", "requests.hugepages-2Mi": "1Gi"},
            {"requests.nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"},
            id="devices and huge pages",
        ),
        pytest.param(
            thing("Service", "s", spec={"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}),
            {"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"},
            {"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"},
            id="a load balancer takes node ports",
        ),
        pytest.param(
            thing(
                "PersistentVolumeClaim",
                "d",
                spec={"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
            ),
            {"requests.storage": "9", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
            {"requests.storage": "2", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
            id="storage in whole bytes, claims by class",
        ),
        pytest.param(thing("ConfigMap", "c"), {"configmaps": "1"}, {"configmaps": "1"}, id="the old name"),
        pytest.param(
            thing("Deployment", "d", spec={"template": {}}),
            {"count/deployments.apps": "1"},
            {"count/deployments.apps": "1"},
            id="any kind can be counted",
        ),
        pytest.param(
            thing(
                "ResourceClaim",
                "r",
                spec={"devices": {"requests": [{"exactly": TWO_GPUS}, {"firstAvailable": [TWO_GPUS, ALL_GPUS]}]}},
            ),
            {"gpu.deviceclass.resource.k8s.io/devices": "40"},
            {"gpu.deviceclass.resource.k8s.io/devices": "34"},
            id="of alternative devices the worst case",
        ),
    ],
)
def test_what_fits_is_charged(subject: Doc, budget: Doc, used: Doc) -> None:
    kata = thing("RuntimeClass", "kata", overhead={"podFixed": {"cpu": "250m"}})
    _, state = submit(subject, quota(budget), kata)
    assert state.written == {"q": {"hard": budget, "used": used}}


@pytest.mark.parametrize(
    ("subject", "given_quota", "why"),
    [
        pytest.param(
            pod(),
            quota({"pods": "2"}, {"pods": "2"}),
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
            id="one pod too many",
        ),
        pytest.param(
            pod(asking(cpu="600m", limits={"memory": "2Gi"})),
            quota({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "9"}, {"requests.cpu": "500m"}),
            "exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=600m, "
            "used: limits.memory=0,requests.cpu=500m, limited: limits.memory=1Gi,requests.cpu=1",
            id="only what is exceeded is told, by name",
        ),
        pytest.param(
            pod(asking(memory="1Gi"), container("d"), initContainers=[container("a")]),
            quota({"cpu": "1", "memory": "1Gi", "requests.nvidia.com/gpu": "1"}),
            "failed quota: q: must specify cpu for: a,c,d; memory for: a,d",
            id="a quota on cpu or memory wants to hear of it",
        ),
        pytest.param(
            pod(),
            thing("ResourceQuota", "q", spec={}, status={"hard": {"pods": "1", "count/pods": "1"}}),
            "status unknown for quota: q, resources: count/pods,pods",
            id="a quota that is not counted yet",
        ),
    ],
)
def test_what_does_not_fit_is_refused(subject: Doc, given_quota: Doc, why: str) -> None:
    with pytest.raises(Forbidden) as refused:
        submit(subject, given_quota)
    assert refused.value.message == f'pods "p" is forbidden: {why}'


def test_quotas_speak_in_order_and_what_is_unsaid_comes_first() -> None:
    full_a, full_b = quota({"pods": "0"}, name="a"), quota({"pods": "0"}, name="b")
    with pytest.raises(Forbidden, match="exceeded quota: a,"):
        submit(pod(), full_b, full_a)
    with pytest.raises(Forbidden, match="failed quota: z: must specify"):
        submit(pod(), full_a, quota({"cpu": "1"}, name="z"))


def test_a_quota_without_status_does_not_count_yet() -> None:
    _, state = submit(pod(), thing("ResourceQuota", "q", spec={"hard": {"pods": "0"}}))
    assert state.written == {}


def test_a_dry_run_charges_nothing() -> None:
    assert submit(pod(), quota({"pods": "1"}), dry_run=True)[1].written == {}


SELECT = {"scopeName": "PriorityClass"}
ANYWHERE = {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "namespaceSelector": {}}}


@pytest.mark.parametrize(
    ("scopes", "subject", "counts"),
    [
        pytest.param({"scopes": ["BestEffort"]}, pod(), True, id="best effort"),
        pytest.param({"scopes": ["NotBestEffort"]}, pod(), False, id="not best effort"),
        pytest.param({"scopes": ["Terminating"]}, pod(activeDeadlineSeconds=0), True, id="a deadline"),
        pytest.param(
            {"scopes": ["NotTerminating", "BestEffort"]}, pod(activeDeadlineSeconds=9), False, id="both must fit"
        ),
        pytest.param({"scopes": ["PriorityClass"]}, pod(priorityClassName="high"), True, id="some class"),
        pytest.param({"scopes": ["PriorityClass"]}, pod(), False, id="no class"),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [SELECT | {"operator": "In", "values": ["high"]}]}},
            pod(priorityClassName="high"),
            True,
            id="one of the classes",
        ),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [SELECT | {"operator": "NotIn", "values": ["high"]}]}},
            pod(),
            True,
            id="no class is none of the classes",
        ),
        pytest.param(
            {"scopeSelector": {"matchExpressions": [SELECT | {"operator": "DoesNotExist"}]}},
            pod(priorityClassName="high"),
            False,
            id="a class where none may be",
        ),
        pytest.param(
            {"scopes": ["CrossNamespacePodAffinity"]},
            pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [ANYWHERE]}}),
            True,
            id="affinity across namespaces",
        ),
        pytest.param({"scopes": ["BestEffort"]}, thing("ConfigMap", "c"), False, id="plain counts have no scope"),
    ],
)
def test_scopes_say_which_objects_count(scopes: Doc, subject: Doc, counts: bool) -> None:
    high = thing("PriorityClass", "high", value=1)
    _, state = submit(subject, quota({"pods": "1", "configmaps": "1"}, **scopes), high)
    assert bool(state.written) is counts


def test_an_update_pays_the_difference() -> None:
    def service(kind: str, ports: int) -> Doc:
        return thing("Service", "s", spec={"type": kind, "ports": [{"port": i} for i in range(ports)]})

    given_quota = quota({"services": "1", "services.nodeports": "3"}, {"services": "1", "services.nodeports": "2"})
    _, state = submit(service("NodePort", 3), given_quota, old=service("NodePort", 2))
    assert state.written["q"]["used"] == {"services": "1", "services.nodeports": "3"}
    assert submit(service("ClusterIP", 2), given_quota, old=service("NodePort", 2))[1].written == {}
    with pytest.raises(Forbidden, match=r"requested: services.nodeports=2, used: services.nodeports=2,"):
        submit(service("NodePort", 4), given_quota, old=service("NodePort", 2))


def test_a_pod_that_comes_into_a_scope_pays_in_full() -> None:
    scoped = quota({"pods": "1"}, scopes=["Terminating"])
    _, state = submit(pod(activeDeadlineSeconds=5), scoped, old=pod())
    assert state.written["q"]["used"] == {"pods": "1"}


def test_events_are_free() -> None:
    submit(thing("Event", "e"), quota({"count/events": "0"}))


@pytest.mark.parametrize(
    ("meta", "status", "expected"),
    [
        pytest.param({}, {"phase": "Running"}, "1", id="alive"),
        pytest.param({}, {"phase": "Succeeded"}, "0", id="finished"),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30},
            {},
            "1",
            id="on its way out",
        ),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:20Z", "deletionGracePeriodSeconds": 30}, {}, "0", id="stuck"
        ),
    ],
)
def test_the_dead_do_not_count(meta: Doc, status: Doc, expected: str) -> None:
    one = pod(status=status)
    one["metadata"] |= meta
    counted = usage(quota({"pods": "9", "count/pods": "9", "nobody/knows": "1"}), {"Pod": [one]}, NOW)
    assert counted == {"pods": expected, "count/pods": "1"}


def test_a_resize_under_way_is_charged_in_full() -> None:
    statuses = [{"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}]
    resized = pod(asking(cpu="1"), status={"phase": "Running", "containerStatuses": statuses})
    assert usage(quota({"cpu": "9"}), {"Pod": [resized]}, NOW) == {"cpu": "3"}


def test_the_controller_learns_which_kinds_to_count() -> None:
    assert kinds_counted_in(quota({"cpu": "1", "count/jobs.batch": "1"})) == ["Pod", "Job"]


amounts = st.lists(st.sampled_from(["100m", "1", "1500m", "2"]), max_size=8)


@given(amounts)
def test_charging_one_by_one_equals_counting_all(requests: list[str]) -> None:
    hard = {"requests.cpu": "100", "pods": "100"}
    pods = [pod(asking(cpu=request)) for request in requests]
    current = quota(hard)
    for one in pods:
        _, state = submit(one, current)
        current = current | {"status": state.written["q"]}
    counted = usage(current, {"Pod": pods}, Instant(0))
    used = current["status"]["used"]
    assert {name: parse(text) for name, text in counted.items()} == {name: parse(used[name]) for name in counted}
