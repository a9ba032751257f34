"""What a delete does to an object's metadata: a table of grace, finalizers and repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bayplan.cluster.embedded.deletion import BY_DEFAULT, DeleteOptions, begin, finished
from bayplan.cluster.kinds import CONFIG_MAP, NAMESPACE, POD, REPLICATION_CONTROLLER, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import parse_rfc3339

NOW = parse_rfc3339("2026-01-01T00:01:40Z")
GOING: dict[str, Any] = {
    "deletionTimestamp": "2026-01-01T00:02:10Z",
    "deletionGracePeriodSeconds": 30,
}  # since 00:01:40
HOLD = ["example.com/hold"]


def made(kind: Kind = CONFIG_MAP, spec: dict[str, Any] | None = None, phase: str = "", **meta: Any) -> Object:
    document = {"metadata": {"name": "a", **meta}, "spec": spec or {}, "status": {"phase": phase}}
    return Object.from_raw(kind, json.dumps(document).encode())


def bound(phase: str = "Running", **meta: Any) -> Object:
    return made(POD, {"nodeName": "n", "terminationGracePeriodSeconds": 30}, phase, **meta)


def asked(**options: Any) -> DeleteOptions:
    return DeleteOptions(**options)


@pytest.mark.parametrize(
    ("item", "options"),
    [
        pytest.param(made(), BY_DEFAULT, id="anything plain"),
        pytest.param(made(), asked(grace=30), id="only pods have a grace"),
        pytest.param(made(POD), asked(grace=30), id="a pod without a node"),
        pytest.param(bound("Succeeded"), BY_DEFAULT, id="a pod that has succeeded"),
        pytest.param(bound("Failed"), asked(grace=30), id="a pod that has failed"),
        pytest.param(bound(), asked(grace=0), id="a pod without grace"),
        pytest.param(bound(**GOING), asked(grace=0), id="a pod that is going, now without grace"),
        pytest.param(
            made(finalizers=["orphan"]), asked(propagation="Background"), id="what was to orphan no longer does"
        ),
        pytest.param(made(NAMESPACE), BY_DEFAULT, id="a namespace that is finalized"),
    ],
)
def test_it_goes_at_once(item: Object, options: DeleteOptions) -> None:
    assert begin(item, options, NOW) is None


@pytest.mark.parametrize(
    ("item", "options", "at", "grace", "finalizers"),
    [
        pytest.param(bound(), BY_DEFAULT, "00:02:10", 30, [], id="a pod's own grace"),
        pytest.param(bound(), asked(grace=5), "00:01:45", 5, [], id="a grace that was asked for"),
        pytest.param(bound(), asked(grace=-3), "00:01:41", 1, [], id="less than none is one second"),
        pytest.param(bound(**GOING), BY_DEFAULT, "00:02:10", 30, [], id="asked again"),
        pytest.param(bound(**GOING), asked(grace=60), "00:02:10", 30, [], id="never longer"),
        pytest.param(bound(**GOING), asked(grace=10), "00:01:50", 10, [], id="shorter from the same beginning"),
        pytest.param(made(finalizers=HOLD), BY_DEFAULT, "00:01:40", 0, HOLD, id="a finalizer holds"),
        pytest.param(bound(finalizers=HOLD), asked(grace=0), "00:01:40", 0, HOLD, id="without grace it holds too"),
        pytest.param(made(), asked(propagation="Orphan"), "00:01:40", 0, ["orphan"], id="dependents stay"),
        pytest.param(
            made(), asked(propagation="Foreground"), "00:01:40", 0, ["foregroundDeletion"], id="dependents first"
        ),
        pytest.param(
            made(finalizers=["orphan", *HOLD]),
            asked(propagation="Foreground"),
            "00:01:40",
            0,
            [*HOLD, "foregroundDeletion"],
            id="the last word on dependents counts",
        ),
        pytest.param(
            made(finalizers=["orphan"]), BY_DEFAULT, "00:01:40", 0, ["orphan"], id="no word leaves the earlier"
        ),
        pytest.param(
            made(REPLICATION_CONTROLLER), BY_DEFAULT, "00:01:40", 0, ["orphan"], id="an old default of an old kind"
        ),
        pytest.param(
            made(NAMESPACE, {"finalizers": ["kubernetes"]}), BY_DEFAULT, "00:01:40", None, [], id="a namespace"
        ),
    ],
)
def test_it_stays_for_now(
    item: Object, options: DeleteOptions, at: str, grace: int | None, finalizers: list[str]
) -> None:
    meta = begin(item, options, NOW)
    assert meta is not None
    assert meta.deletion_timestamp == f"2026-01-01T{at}Z"
    assert meta.deletion_grace_period_seconds == grace
    assert [*meta.finalizers] == finalizers


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 2)], ids=["kinds that count", "kinds that do not"])
def test_the_mark_counts_as_a_change(before: int, after: int) -> None:
    meta = begin(made(finalizers=HOLD, generation=before), BY_DEFAULT, NOW)
    assert meta is not None
    assert meta.generation == after


@pytest.mark.parametrize(
    ("item", "over"),
    [
        pytest.param(made(), False, id="nobody deleted it"),
        pytest.param(bound(**GOING), False, id="its grace is not over"),
        pytest.param(made(**GOING | {"deletionGracePeriodSeconds": 0}), True, id="nothing holds it"),
        pytest.param(
            made(**GOING | {"deletionGracePeriodSeconds": 0}, finalizers=HOLD), False, id="a finalizer holds it"
        ),
        pytest.param(
            made(NAMESPACE, {"finalizers": ["kubernetes"]}, deletionTimestamp="2026-01-01T00:00:00Z"),
            False,
            id="a namespace has content",
        ),
        pytest.param(made(NAMESPACE, deletionTimestamp="2026-01-01T00:00:00Z"), True, id="a namespace is empty"),
    ],
)
def test_it_is_over(item: Object, over: bool) -> None:
    assert finished(item) is over
