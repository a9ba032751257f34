"""What the managers see of a pod: CPUs of its own, and memory in bytes."""

from __future__ import annotations

import pytest

from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.node.needs import ContainerNeed, needs_of


def need(cpu: str, memory: str = "1Gi", *, limit: str | None = None) -> ContainerNeed:
    """Of the only container of a pod."""
    resources = ResourceRequirements(
        requests={"cpu": cpu, "memory": memory}, limits={"cpu": limit or cpu, "memory": memory}
    )
    spec = PodSpec(containers=(Container(name="app", resources=resources),))
    return needs_of(Pod(metadata=ObjectMeta(name="pod", uid="pod"), spec=spec)).container("app")


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        pytest.param("2", 2, id="a whole number is so many CPUs of its own"),
        pytest.param("2000m", 2, id="however it is spelled"),
        pytest.param("0.2e1", 2, id="and in the scientific notation too"),
        pytest.param("1500m", 0, id="a fraction runs on the shared ones"),
        pytest.param("1001m", 0, id="be it a thousandth"),
        pytest.param("1999999999n", 2, id="less than a thousandth short counts as the whole thousandth"),
        pytest.param("2000000001n", 0, id="less than a thousandth more counts as one more"),
        pytest.param("1n", 0, id="next to nothing is no CPU"),
    ],
)
def test_cpus_of_its_own(cpu: str, expected: int) -> None:
    assert need(cpu).cpus == expected


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param("1Gi", 1 << 30, id="binary units"),
        pytest.param("1k", 1000, id="decimal units"),
        pytest.param("1500m", 2, id="part of a byte is a byte"),
    ],
)
def test_memory_is_counted_in_bytes(memory: str, expected: int) -> None:
    assert need("1", memory).memory == {"memory": expected}


def test_what_is_not_guaranteed_has_nothing_of_its_own() -> None:
    assert need("2", limit="3") == ContainerNeed("app")
