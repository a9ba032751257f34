"""Requests, limits, claims; rounding; and the pull policy of an image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.images import default_pull_policy
from bayplan.cluster.embedded.admission.pods.resources import (
    is_extended,
    round_resource_list,
    validate_resource_requirements,
)
from bayplan.model.quantity import Quantity, parse
from tests.cluster.admission.pod_specs import container_faults

NOT_EMPTY = "must be one of the names in pod.spec.resourceClaims: gpu, nic"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}, "requests": {"cpu": "100m"}}, [], id="good amounts"
        ),
        pytest.param(
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            ['requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
            id="a request above its limit",
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}},
            ['requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
            id="devices are not overcommitted",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}},
            ["limits: Required value: Limit must be set for non overcommitable resources"],
            id="devices need a limit",
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "500m"}},
            [
                'limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
                'requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            ],
            id="half a device, in the limit and in the request copied from it",
        ),
        pytest.param(
            {"requests": {"memory": "-1"}},
            ['requests[memory]: Invalid value: "-1": must be greater than or equal to 0'],
            id="a negative amount",
        ),
        pytest.param(
            {"requests": {"gpu": "1", "pods": "1500m"}},
            [
                'requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
                'requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
                'requests[pods]: Invalid value: "1500m": must be an integer',
                'requests[pods]: Invalid value: "pods": must be a standard resource for containers',
            ],
            id="names that a container cannot ask for",
        ),
        pytest.param(
            {"limits": {"requests.nvidia.com/gpu": "1"}, "requests": {"requests.nvidia.com/gpu": "1"}},
            [
                f'{side}[requests.nvidia.com/gpu]: Invalid value: "requests.nvidia.com/gpu": '
                "doesn't follow extended resource name standard"
                for side in ("limits", "requests")
            ],
            id="a quota's name",
        ),
        pytest.param({"requests": {"kubernetes.io/x": "500m"}}, [], id="a name of Kubernetes' own domain passes"),
        pytest.param(
            {"limits": {"hugepages-2Mi": "3Mi"}},
            [
                ": Forbidden: HugePages require cpu or memory",
                'limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
                'requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
            ],
            id="a page and a half, and nothing else",
        ),
        pytest.param(
            {"limits": {"hugepages-x": "1", "cpu": "1"}},
            [
                f'{side}[hugepages-x]: Invalid value: "1": 1 is not positive integer multiple of hugepages-x'
                for side in ("limits", "requests")
            ],
            id="a page of no size",
        ),
        pytest.param(
            {"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}, {"name": "nic"}]},
            [],
            id="claims used whole or by request",
        ),
        pytest.param(
            {"claims": [{"name": "gpu", "request": "a"}, {"name": "gpu"}, {"name": "gpu", "request": "b"}]},
            ['claims[1]: Duplicate value: "gpu"', 'claims[2]: Duplicate value: "gpu"'],
            id="a claim used whole and by request",
        ),
        pytest.param(
            {
                "claims": [
                    {"name": ""},
                    {"name": "fpga"},
                    {"name": "nic", "request": "a"},
                    {"name": "nic", "request": "a"},
                ]
            },
            [
                "claims[0]: Required value",
                f'claims[1]: Not found: "fpga": {NOT_EMPTY}',
                'claims[3]: Duplicate value: "nic/a"',
            ],
            id="claims that are nowhere, unknown or repeated",
        ),
    ],
)
def test_resources(resources: Doc, expected: list[str]) -> None:
    paths = [f"resources{fault}" if fault[0] == ":" else f"resources.{fault}" for fault in expected]
    assert container_faults(resources=resources) == sorted(paths)


def test_a_pod_as_a_whole_has_cpu_memory_and_hugepages() -> None:
    errors = Errors()
    limits = {"cpu": "1", "hugepages-1Gi": "1Gi", "nvidia.com/gpu": "1", "gpu": "1"}
    validate_resource_requirements({"limits": limits}, "spec.resources", errors, pod_level=True)
    assert [f"{cause.field}: {cause.message}" for cause in errors] == [
        'spec.resources.limits[nvidia.com/gpu]: Unsupported value: "nvidia.com/gpu": '
        'supported values: "cpu", "hugepages-", "memory"',
        'spec.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
    ]


def test_claims_of_a_pod_without_claims_are_not_found() -> None:
    errors = Errors()
    validate_resource_requirements({"claims": [{"name": "x"}]}, "r", errors)
    assert [cause.message for cause in errors] == [
        'Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty'
    ]


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        pytest.param("nvidia.com/gpu", True, id="a vendor's device"),
        pytest.param("cpu", False, id="a resource of Kubernetes"),
        pytest.param("node.kubernetes.io/x", False, id="a name below kubernetes.io"),
        pytest.param("requests.nvidia.com/gpu", False, id="a quota's name"),
        pytest.param(f"{'a' * 250}/gpu", False, id="a domain too long for a quota's name"),
    ],
)
def test_extended_resources(name: str, extended: bool) -> None:
    assert is_extended(name) is extended


@given(st.integers(-(10**15), 10**15))
def test_amounts_are_rounded_away_from_zero_to_whole_thousandths(nanos: int) -> None:
    amount = Quantity(nanos)
    amounts = {"cpu": str(amount)}
    round_resource_list(amounts)
    rounded = parse(amounts["cpu"])
    assert rounded.nanos % 10**6 == 0
    assert 0 <= abs(rounded.nanos) - abs(nanos) < 10**6


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("redis", "Always", id="no tag is the tag latest"),
        pytest.param("redis:latest", "Always", id="the tag latest moves"),
        pytest.param("redis:7", "IfNotPresent", id="another tag stays"),
        pytest.param("example.com:5000/a/b", "Always", id="a port is no tag"),
        pytest.param("example.com:5000/a/b:1", "IfNotPresent", id="a tag after a port"),
        pytest.param("[::1]:5000/a", "Always", id="an IPv6 registry"),
        pytest.param("under_score.io/a", "Always", id="what is no domain is a path"),
        pytest.param(f"redis@{DIGEST}", "IfNotPresent", id="a digest stays"),
        pytest.param(f"redis:latest@{DIGEST}", "Always", id="the tag latest counts even beside a digest"),
        pytest.param(f"redis:latest@{DIGEST[:-1]}", "IfNotPresent", id="a digest of the wrong length is no image"),
        pytest.param("Redis", "IfNotPresent", id="a path in capitals is no image"),
        pytest.param("HOST/redis", "Always", id="a domain may have capitals"),
        pytest.param("a" * 64, "IfNotPresent", id="an image id is no image name"),
        pytest.param("a" * 300, "IfNotPresent", id="a path too long is no image"),
        pytest.param("", "IfNotPresent", id="nothing is no image"),
        pytest.param(" redis", "IfNotPresent", id="whitespace is no image"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy
