"""A pod's requests and limits are counted as the scheduler counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.objects import from_builtins
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.model.quantity import parse
from bayplan.model.resources import Amounts, amounts, nonzero_requests, pod_limits, pod_requests
from tests.model.recorded import recorded

MIB = 2**20


def asks(cpu: str = "", memory: str = "", *, sidecar: bool = False, limit: str = "") -> Container:
    return Container(
        resources=ResourceRequirements(
            requests={name: text for name, text in (("cpu", cpu), ("memory", memory)) if text},
            limits={"cpu": limit} if limit else {},
        ),
        restart_policy="Always" if sidecar else None,
    )


def pod(*containers: Container, init: tuple[Container, ...] = (), overhead: str = "", own: str = "") -> Pod:
    return Pod(
        spec=PodSpec(
            containers=containers,
            init_containers=init,
            overhead={"cpu": overhead} if overhead else {},
            resources=ResourceRequirements(requests={"cpu": own}) if own else None,
        )
    )


@pytest.mark.parametrize(
    ("of", "requests"),
    [
        pytest.param(pod(asks("100m", "1Mi"), asks("1")), {"cpu": 1100, "memory": MIB}, id="containers add up"),
        pytest.param(pod(asks()), {}, id="a missing request is nothing"),
        pytest.param(pod(asks("0")), {"cpu": 0}, id="a request of zero is there, and is zero"),
        pytest.param(
            pod(asks("1"), init=(asks("3"), asks("2"))), {"cpu": 3000}, id="the largest init container counts"
        ),
        pytest.param(
            pod(asks("1"), init=(asks("500m", sidecar=True), asks("1"))),
            {"cpu": 1500},
            id="a sidecar runs beside the containers and the init containers after it",
        ),
        pytest.param(
            pod(asks("1"), init=(asks("2"), asks("500m", sidecar=True))),
            {"cpu": 2000},
            id="an init container before a sidecar runs without it",
        ),
        pytest.param(pod(asks("1"), overhead="250m"), {"cpu": 1250}, id="overhead comes on top"),
        pytest.param(
            pod(asks("1", "1Mi"), overhead="250m", own="3"),
            {"cpu": 3250, "memory": MIB},
            id="the pod's own request replaces its containers', resource by resource, before overhead",
        ),
        pytest.param(pod(asks("0.4m"), asks("0.4m")), {"cpu": 1}, id="only the sum is rounded up"),
    ],
)
def test_requests(of: Pod, requests: Amounts) -> None:
    assert pod_requests(of) == requests


def test_overhead_is_added_to_limits_only_where_there_is_one() -> None:
    assert pod_limits(pod(asks(memory="1Mi"), overhead="1")) == {}
    assert pod_limits(pod(asks(limit="2"), asks(limit="500m"), overhead="1")) == {"cpu": 3500}


def test_scoring_gives_every_silent_container_a_default() -> None:
    assert nonzero_requests(pod(asks(), asks("1", "0"))) == (1100, 200 * MIB)
    assert nonzero_requests(pod(asks(), asks(), own="3")) == (3000, 400 * MIB)


def test_a_node_offers_base_units() -> None:
    assert amounts({"cpu": "63.5", "memory": "1Gi", "nvidia.com/gpu": "8"}) == {
        "cpu": 63500,
        "memory": 2**30,
        "nvidia.com/gpu": 8,
    }


def test_every_recorded_pod_is_counted_as_upstream_counts_it() -> None:
    cases = recorded("pods")
    assert len(cases) == 300
    for case in cases:
        one = from_builtins(case["pod"], Pod)
        found = {"requests": pod_requests(one), "limits": pod_limits(one), "nonzero": list(nonzero_requests(one))}
        assert found == case["expected"], case["pod"]


cpus = st.integers(0, 10_000_000).map(lambda micros: f"{micros}u")


@given(st.lists(cpus, min_size=1, max_size=4), st.lists(st.tuples(cpus, st.booleans()), max_size=4))
def test_a_pod_takes_at_least_its_containers_and_each_init_container(
    main: list[str], init: list[tuple[str, bool]]
) -> None:
    found = pod_requests(pod(*map(asks, main), init=tuple(asks(cpu, sidecar=sidecar) for cpu, sidecar in init)))["cpu"]
    always = sum(parse(cpu).nanos for cpu in main) + sum(parse(cpu).nanos for cpu, sidecar in init if sidecar)
    assert found * 1_000_000 >= max([always, *(parse(cpu).nanos for cpu, _ in init)])
