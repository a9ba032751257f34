"""LimitRanges: defaults, bounds and their words."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.model.errors import Forbidden
from tests.cluster.admission.plugin_bench import container, pod, submit, thing


def limits(*items: Doc, name: str = "lim") -> Doc:
    return thing("LimitRange", name, spec={"limits": list(items)})


def sized(name: str = "c", requests: Doc | None = None, limit: Doc | None = None, **fields: Any) -> Doc:
    resources = {side: amounts for side, amounts in (("requests", requests), ("limits", limit)) if amounts}
    return container(name, **{"resources": resources, **fields})


def test_defaults_fill_what_a_container_leaves_open_and_are_noted() -> None:
    given = limits({"type": "Container", "default": {"memory": "1Gi", "cpu": "1"}, "defaultRequest": {"memory": "1Gi"}})
    request, _ = submit(pod(sized(limit={"cpu": "100m"}, requests={"cpu": "100m"}), initContainers=[sized("i")]), given)
    spec = request.doc["spec"]
    assert spec["containers"][0]["resources"] == {
        "limits": {"cpu": "100m", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    }
    assert spec["initContainers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"memory": "1Gi"},
    }
    assert request.doc["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container c; "
        "memory limit for container c; memory request for init container i; cpu, memory limit for init container i"
    }


def test_a_container_that_says_all_is_left_alone() -> None:
    full = sized(limit={"cpu": "1"}, requests={"cpu": "1"})
    request, _ = submit(pod(full), limits({"type": "Container", "default": {"cpu": "2"}}))
    assert request.doc["spec"]["containers"] == [full]
    assert "annotations" not in request.doc["metadata"]


@pytest.mark.parametrize(
    ("limit", "subject", "why"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "100m"}},
            pod(sized(requests={"cpu": "50m"})),
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="a request below the minimum",
        ),
        pytest.param(
            {"type": "Container", "min": {"cpu": "100m"}},
            pod(sized(requests={"cpu": "100m"}, limit={"cpu": "50m"})),
            "minimum cpu usage per Container is 100m, but limit is 50m",
            id="a limit below the minimum",
        ),
        pytest.param(
            {"type": "Container", "min": {"cpu": "100m"}},
            pod(),
            "minimum cpu usage per Container is 100m.  No request is specified",
            id="a minimum asks for a request",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            pod(sized(requests={"cpu": "2"}, limit={"cpu": "1"})),
            "maximum cpu usage per Container is 1, but request is 2",
            id="a request above the maximum",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            pod(sized(limit={"cpu": "1"}), initContainers=[sized("i", limit={"cpu": "3"})]),
            "maximum cpu usage per Container is 1, but limit is 3",
            id="init containers are bound too",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"memory": "1500m"}},
            pod(sized(requests={"memory": "1Gi"}, limit={"memory": "1717986918400m"})),
            "memory max limit to request ratio per Container is 1500m, but provided ratio is 1.600000",
            id="a ratio above the bound",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            pod(sized(limit={"cpu": "1"})),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="a ratio needs a request",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            pod(sized(requests={"cpu": "1"})),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="a ratio needs a limit",
        ),
        pytest.param(
            {"type": "Pod", "max": {"memory": "2Gi"}},
            pod(sized(limit={"memory": "1Gi"}), sized("d", limit={"memory": "1536Mi"})),
            "maximum memory usage per Pod is 2Gi, but limit is 2560Mi",
            id="a pod is the sum of its containers",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "2"}},
            pod(
                sized(limit={"cpu": "1"}),
                initContainers=[
                    sized("s", limit={"cpu": "1"}, restartPolicy="Always"),
                    sized("i", limit={"cpu": "1500m"}),
                ],
            ),
            "maximum cpu usage per Pod is 2, but limit is 2500m",
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "2"}},
            pod(resources={"limits": {"cpu": "3"}}),
            "maximum cpu usage per Pod is 2, but limit is 3",
            id="the pod's own resources win",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "1"}},
            pod(),
            "[minimum cpu usage per Pod is 1.  No request is specified, "
            "maximum cpu usage per Pod is 2.  No limit is specified, "
            "maximum memory usage per Pod is 1Gi.  No limit is specified]",
            id="several violations are told together",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            pod(container("a"), container("b")),
            "maximum cpu usage per Container is 1.  No limit is specified",
            id="the same words are told once",
        ),
    ],
)
def test_pods_out_of_bounds_are_refused(limit: Doc, subject: Doc, why: str) -> None:
    with pytest.raises(Forbidden) as refused:
        submit(subject, limits(limit))
    assert refused.value.message == f'pods "p" is forbidden: {why}'
    assert refused.value.details.kind == "pods"


@pytest.mark.parametrize(
    ("size", "bound"),
    [
        pytest.param("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi", id="a claim that is too small"),
        pytest.param("20Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi", id="a claim that is too large"),
    ],
)
def test_claims_have_bounds_of_their_own(size: str, bound: str) -> None:
    given = limits({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}})
    claim = thing("PersistentVolumeClaim", "data", spec={"resources": {"requests": {"storage": size}}})
    with pytest.raises(Forbidden) as refused:
        submit(claim, given)
    assert refused.value.message == f'persistentvolumeclaims "data" is forbidden: {bound}, but request is {size}'


def test_templates_and_plain_updates_are_not_looked_at() -> None:
    given = limits({"type": "Container", "min": {"cpu": "1"}, "default": {"cpu": "1"}})
    deployment = thing("Deployment", "d", spec={"template": {"metadata": {}, "spec": {"containers": [container()]}}})
    request, _ = submit(deployment, given)
    assert request.doc == deployment
    submit(pod(), given, old=pod())
    with pytest.raises(Forbidden):
        submit(pod(), given, old=pod(), subresource="resize")


def test_nothing_that_is_being_deleted_is_held_back() -> None:
    going = pod()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    submit(pod(), limits({"type": "Container", "min": {"cpu": "1"}}), old=going, subresource="resize")
