"""Which resources are GPUs, how they are counted, what they are called, and whose they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.ledger.differ.facts import pod_facts
from bayplan.ledger.differ.gpus import GpuVendor, GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.differ.pods import concerning, refreshed
from bayplan.ledger.rows import GpuPeriod, GpuPod, PodResource
from tests.ledger.differ.lives import VENDORS, Watcher, at, condition, container, over, pod, seen


def one(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {name.replace("_", "/"): n for name, n in requests.items()}}}


def asked(**fields: Any) -> dict[str, int]:
    return pod_facts(pod(1, spec=fields), VENDORS, UserRule()).gpus


def gpu(n: int, **more: Any) -> dict[str, Any]:
    return {"name": f"c{n}", "resources": {"requests": {"nvidia.com/gpu": str(n)}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [gpu(1), gpu(2)]}, 3000, id="containers add up"),
        pytest.param({"containers": [gpu(1)], "initContainers": [gpu(4)]}, 4000, id="a larger init container counts"),
        pytest.param({"containers": [gpu(2)], "initContainers": [gpu(1)]}, 2000, id="a smaller one does not"),
        pytest.param(
            {"containers": [gpu(1)], "initContainers": [gpu(2, restartPolicy="Always")]}, 3000, id="a sidecar adds up"
        ),
        pytest.param(
            {"containers": [gpu(1)], "overhead": {"nvidia.com/gpu": "1"}}, 2000, id="the runtime's overhead adds up"
        ),
        pytest.param({"containers": [gpu(0)]}, None, id="none asked for is none"),
    ],
)
def test_gpus_are_counted_as_the_scheduler_counts(spec: dict[str, Any], expected: int | None) -> None:
    assert asked(**spec).get("nvidia.com/gpu") == expected


@pytest.mark.parametrize(
    ("resource", "vendor"),
    [
        ("nvidia.com/gpu", "NVIDIA"),
        ("nvidia.com/gpu.shared", "NVIDIA"),
        ("nvidia.com/mig-1g.10gb", "NVIDIA"),
        ("amd.com/gpu", "AMD"),
        ("amd.com/cpx_nps4", "AMD"),
        ("gpu.intel.com/i915", "Intel"),
        ("gpu.intel.com/xe", "Intel"),
        ("gpu.intel.com/xe_monitoring", None),
        ("gpu.intel.com/millicores", None),
        ("habana.ai/gaudi", "Habana"),
        ("huawei.com/Ascend910", "Huawei"),
        ("huawei.com/Ascend310P-memory", None),
        ("google.com/tpu", "Google"),
        ("aws.amazon.com/neuron", "AWS"),
        ("nvidia.com/gpumem", None),
        ("cpu", None),
        ("hugepages-2Mi", None),
    ],
)
def test_vendors(resource: str, vendor: str | None) -> None:
    found = VENDORS.of(resource)
    assert (found and found.name) == vendor


def test_a_part_of_a_device_counts_by_its_configured_share_or_as_one() -> None:
    amounts = {"nvidia.com/mig-1g.10gb": 3, "nvidia.com/mig-3g.40gb": 1, "memory": 7}
    assert VENDORS.counted(amounts) == {"nvidia.com/mig-1g.10gb": 3000, "nvidia.com/mig-3g.40gb": 1000}
    shares = GpuVendors(shares={"nvidia.com/mig-1g.10gb": 143})
    assert shares.counted(amounts) == {"nvidia.com/mig-1g.10gb": 429, "nvidia.com/mig-3g.40gb": 1000}


def test_a_vendor_is_added_by_configuration() -> None:
    vendors = GpuVendors((GpuVendor("Acme", ("acme.com/npu",), ("acme.com/model",)),))
    assert vendors.counted({"acme.com/npu": 2, "nvidia.com/gpu": 1}) == {"acme.com/npu": 2000}
    assert vendors.model("acme.com/npu", {"acme.com/model": "X1"}) == "X1"


def test_a_pod_without_gpus_does_not_concern_the_ledger() -> None:
    assert concerning(pod(1), seen(1))
    assert not concerning(pod(1, gpus=0), seen(1))
    assert not concerning(pod(1, spec={"containers": [{"name": "c"}]}), seen(1))


SCHEDULED = condition("PodScheduled", "True", 5)


def test_the_model_comes_with_the_binding() -> None:
    watcher = Watcher(model_of=lambda node, _: {"a": "H100"}.get(node, ""))
    watcher.see(1, pod(1))
    assert [row.gpu_model for row in watcher.all(PodResource)] == [""]
    watcher.see(6, pod(2, "Pending", SCHEDULED, node="a"))
    assert [row.gpu_model for row in watcher.all(PodResource)] == ["H100"]
    assert [row.gpu_model for row in watcher.all(GpuPeriod)] == ["H100"]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(pod(2, "Pending", SCHEDULED, node="a"), id="a pod that holds its GPUs"),
        pytest.param(
            pod(2, "Succeeded", SCHEDULED, node="a", containers=(container(over(6, 9)),)), id="a pod that has ended"
        ),
    ],
)
def test_a_node_seen_later_than_its_pod_still_names_the_model(version: Any) -> None:
    watcher = Watcher()
    watcher.see(10, version)
    assert watcher.pod is not None
    watcher.pod, rows = refreshed(watcher.pod, seen(11, model_of=lambda *_: "H100"))
    watcher.ledger.take(rows)
    assert [row.gpu_model for row in watcher.all(PodResource)] == ["H100"]
    assert [row.gpu_model for row in watcher.all(GpuPeriod)] == ["H100"]
    assert not len(refreshed(watcher.pod, seen(12, model_of=lambda *_: "H200"))[1]), "once named, it keeps its name"


def test_an_owner_known_later_gives_the_root() -> None:
    watcher = Watcher()
    owners = [{"kind": "Set", "uid": "first"}, {"kind": "Job", "uid": "job", "controller": True}]
    watcher.see(10, pod(1, meta={"ownerReferences": owners}))
    assert watcher.pod is not None
    _, rows = refreshed(watcher.pod, seen(11, root_of=lambda owner: f"above {owner}"))
    watcher.ledger.take(rows)
    assert [(row.owner_uid, row.root_uid) for row in watcher.all(GpuPod)] == [("job", "above job")]


MANAGED = [
    {"manager": "kubelet", "operation": "Update", "time": "2026-01-01T00:00:09Z"},
    {"manager": "notebook-server", "operation": "Update", "time": "2026-01-01T00:00:01Z"},
]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(UserRule(), "unknown", id="nothing is configured"),
        pytest.param(UserRule(labels=("owner", "user")), "ada", id="the first label that is there"),
        pytest.param(UserRule(labels=("owner",), annotations=("mail",)), "ada@example.org", id="an annotation"),
        pytest.param(UserRule(labels=("owner",), creator=True), "notebook-server", id="who made the object"),
        pytest.param(UserRule(annotations=("owner",)), "unknown", id="nobody is named"),
    ],
)
def test_users(rule: UserRule, expected: str) -> None:
    meta = {"labels": {"user": "ada"}, "annotations": {"mail": "ada@example.org"}, "managedFields": MANAGED}
    watcher = Watcher(rule)
    watcher.see(1, pod(1, meta=meta))
    assert [row.user for row in watcher.all(GpuPod)] == [expected]


def test_a_pod_of_which_only_its_row_is_left_is_not_told_again() -> None:
    watcher = Watcher()
    watcher.see(10, pod(2, "Pending", SCHEDULED, node="a"))
    watcher.ledger.last.clear()
    watcher.restart()
    rows = watcher.see(20, pod(3, "Running", SCHEDULED, node="a"))
    assert [row.event_type for row in rows if hasattr(row, "event_type")] == ["Phase"]
    assert [(row.start_at, row.end_at) for row in watcher.all(GpuPeriod)] == [(at(5), None)]


def test_facts_are_the_same_whether_or_not_an_earlier_version_helped() -> None:
    first, second = pod(1, node="a", gpus=2), pod(2, "Running", node="a", gpus=4)
    known = pod_facts(first, VENDORS, UserRule())
    assert pod_facts(second, VENDORS, UserRule(), known) == pod_facts(second, VENDORS, UserRule())
    assert msgspec.structs.replace(pod_facts(first, VENDORS, UserRule(), known)) == known
