"""What a monitor's series come to: whose they are, on which device, in which unit; and what tells nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.ledger.use.exporters import MIB, Labels, UseSettingsError
from bayplan.ledger.use.reading import Holders, Holding, Measured, Reading, Series, measured
from bayplan.model.clock import SECOND, Instant
from tests.ledger.books import CLUSTER, MIDNIGHT

UUID = "GPU-16355474-d5ef-9c9f-3367-6ff0eaa0e4a7"
DCGM = {
    "__name__": "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DRIVER_VERSION": "535.154.05",
    "Hostname": "node-1",
    "UUID": UUID,
    "container": "main",
    "device": "nvidia2",
    "gpu": "2",
    "instance": "10.0.0.7:9400",
    "job": "dcgm",
    "modelName": "NVIDIA H100",
    "namespace": "lab",
    "pod": "notebook",
}
RENAMED = DCGM | {
    "exported_namespace": "lab",
    "exported_pod": "notebook",
    "namespace": "gpu-operator",
    "pod": "dcgm-exporter-6ldbb",
}
AMD = {
    "__name__": "gpu_gfx_activity",
    "card_series": "AMD Instinct MI300X OAM",
    "container": "main",
    "gpu_compute_partition_type": "spx",
    "gpu_id": "2",
    "gpu_partition_id": "0",
    "gpu_uuid": "ccff74a1-0000-1000-80e0-c6d49f5b0d86",
    "hostname": "tw038",
    "namespace": "lab",
    "pod": "notebook",
    "serial_number": "692409005408",
}
GENERIC = {"namespace": "lab", "pod": "notebook", "device": "card0"}
NOON = Instant(MIDNIGHT + 12 * 3600 * SECOND)
MINUTE = 60 * SECOND


def series(metric: dict[str, str], *values: str, at: Instant = NOON) -> Series:
    return Series(metric, [((at + i * MINUTE) / SECOND, value) for i, value in enumerate(values)])


def holder(uid: str = "u1", name: str = "notebook", since: int = -60, until: int | None = None) -> Holding:
    """Who held from so many minutes after noon until so many."""
    end = None if until is None else Instant(NOON + until * MINUTE)
    return Holding(uid, "lab", name, Instant(NOON + since * MINUTE), end)


def told(
    use: list[Series], memory: list[Series] | None = None, holders: list[Holding] | None = None, **reading: Any
) -> Measured:
    return measured(use, memory or [], Holders(holders or [holder()]), Reading(CLUSTER, **reading))


@pytest.mark.parametrize(
    ("metric", "value", "unit", "expected"),
    [
        pytest.param(DCGM, "37", "auto", (UUID, 0.37), id="percents of dcgm-exporter"),
        pytest.param(RENAMED, "37", "auto", (UUID, 0.37), id="labels that Prometheus renamed are the exporter's"),
        pytest.param(
            DCGM | {"__name__": "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb"},
            "0.5",
            "auto",
            (f"{UUID}/7", 0.5),
            id="a MIG instance, which has its parent's UUID and a share from the profiler",
        ),
        pytest.param(AMD, "99", "auto", (f"{AMD['gpu_uuid']}/0", 0.99), id="percents of AMD's exporter"),
        pytest.param(
            {k: v for k, v in AMD.items() if k != "gpu_uuid"} | {"__name__": "amd_gpu_gfx_activity"},
            "5",
            "auto",
            ("692409005408/0", 0.05),
            id="AMD's exporter with its prefix, without uuids",
        ),
        pytest.param(GENERIC, "0.25", "ratio", ("card0", 0.25), id="a query of one's own, in shares"),
        pytest.param(GENERIC, "25", "percent", ("card0", 0.25), id="a query of one's own, in percents"),
        pytest.param(GENERIC, "102", "percent", ("card0", 1.0), id="a rate a little above the whole is the whole"),
        pytest.param(DCGM, "1e2", "auto", (UUID, 1.0), id="a number as Prometheus may write it"),
        pytest.param(
            {"pod_name": "notebook", "pod_namespace": "lab", "pod": "exporter-x", "namespace": "ops", "uuid": "GPU-1"},
            "1",
            "ratio",
            ("GPU-1", 1.0),
            id="old names of labels",
        ),
        pytest.param(DCGM | {"UUID": ""}, "1", "auto", ("2", 0.01), id="a label that is empty says nothing"),
    ],
)
def test_a_value_becomes_a_row(metric: dict[str, str], value: str, unit: Any, expected: tuple[str, float]) -> None:
    found = told([series(metric, value)], unit=unit)
    (row,) = found.rows
    assert (row.cluster, row.pod_uid, row.at, row.memory_used) == (CLUSTER, "u1", NOON, None)
    assert (row.device, row.utilisation) == expected
    assert found.skipped == {}


@pytest.mark.parametrize(
    ("metric", "value", "why"),
    [
        pytest.param(DCGM, "NaN", "not-a-number", id="NaN"),
        pytest.param(DCGM, "+Inf", "not-a-number", id="infinite"),
        pytest.param(DCGM, "many", "not-a-number", id="a word"),
        pytest.param(DCGM, "-1", "out-of-range", id="below nothing"),
        pytest.param(DCGM, "2147483632", "out-of-range", id="DCGM's way to say that it does not know"),
        pytest.param({k: v for k, v in DCGM.items() if k != "pod"}, "5", "no-pod", id="a device that nobody holds"),
        pytest.param(DCGM | {"pod": ""}, "5", "no-pod", id="a pod without a name"),
        pytest.param({k: DCGM[k] for k in ("__name__", "namespace", "pod")}, "5", "no-device", id="no device"),
        pytest.param(DCGM | {"pod": "other"}, "5", "unknown-pod", id="a pod that the ledger does not know"),
        pytest.param(DCGM | {"namespace": "prod"}, "5", "unknown-pod", id="a pod of that name in another namespace"),
        pytest.param(
            {k: v for k, v in RENAMED.items() if not k.startswith("exported")}, "5", "unknown-pod",
            id="a device that nobody holds, with the exporter's own pod beside it",
        ),
        pytest.param(DCGM | {"pod_uid": "u0"}, "5", "unknown-pod", id="a uid that the ledger does not know"),
    ],
)  # fmt: skip
def test_what_tells_nothing_is_counted(metric: dict[str, str], value: str, why: str) -> None:
    assert told([series(metric, value)]) == ([], {why: 1})


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        pytest.param(DCGM | {"__name__": "DCGM_FI_DEV_FB_USED"}, "40960", 40960 * MIB, id="MiB of dcgm-exporter"),
        pytest.param(RENAMED | {"__name__": "DCGM_FI_DEV_FB_USED"}, "1", MIB, id="whose labels were renamed"),
        pytest.param(DCGM | {"__name__": ""}, "123456", 123456, id="bytes of a query of one's own"),
        pytest.param(DCGM | {"__name__": "DCGM_FI_DEV_FB_USED"}, "0", 0, id="none in use"),
        pytest.param(DCGM | {"__name__": "DCGM_FI_DEV_FB_USED"}, "NaN", None, id="no number"),
        pytest.param(DCGM | {"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-2"}, "9", None, id="of another device"),
        pytest.param(DCGM | {"__name__": "DCGM_FI_DEV_FB_USED"}, "9e99", None, id="more than there is in the world"),
    ],
)
def test_memory_stands_beside_the_utilisation(metric: dict[str, str], value: str, expected: int | None) -> None:
    (row,) = told([series(DCGM, "1")], [series(metric, value)]).rows
    assert row.memory_used == expected


def test_of_several_values_for_the_same_the_largest_counts() -> None:
    replica = [series(DCGM | {"prometheus_replica": str(i)}, value) for i, value in enumerate(["3", "80", "0"])]
    (row,) = told(replica).rows
    assert row.utilisation == 0.8


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        pytest.param(-11, "", id="before the first was bound"),
        pytest.param(-9, "", id="the first is bound, but the value may be older than that"),
        pytest.param(-8, "first", id="the first"),
        pytest.param(-1, "first", id="the last minute of the first"),
        pytest.param(0, "", id="the first has ended"),
        pytest.param(3, "", id="the second is not bound yet"),
        pytest.param(6, "", id="the second is bound: what was measured may be the first's"),
        pytest.param(7, "second", id="the second"),
        pytest.param(60, "second", id="the second still holds"),
    ],
)
def test_a_name_that_is_used_again_is_two_pods(minute: int, expected: str) -> None:
    holders = [holder("second", since=5), holder("first", since=-10, until=0)]
    use = [series(DCGM, "50", at=Instant(NOON + minute * MINUTE))]
    found = told(use, holders=holders, fresh=2 * MINUTE).rows
    assert [row.pod_uid for row in found] == ([expected] if expected else [])


def test_a_pod_whose_end_is_only_inferred_yields_to_its_successor() -> None:
    holders = [holder("first", since=-10, until=30), holder("second", since=5)]
    use = [series(DCGM, "1", at=Instant(NOON + 10 * MINUTE))]
    assert [row.pod_uid for row in told(use, holders=holders, fresh=MINUTE).rows] == ["second"]


def test_a_uid_says_whose_it_is_however_the_pod_is_called() -> None:
    holders = [holder("first", since=-10, until=0), holder("second", since=0)]
    use = [series(DCGM | {"pod_uid": uid}, "1", "2") for uid in ("first", "second")]
    found = told(use, holders=holders, fresh=2 * MINUTE)
    assert [(row.pod_uid, row.utilisation) for row in found.rows] == [("second", 0.01), ("second", 0.02)]
    assert found.skipped == {"unknown-pod": 2}


def test_values_without_a_unit_are_refused() -> None:
    with pytest.raises(UseSettingsError) as refused:
        told([series(GENERIC, "1")])
    assert "without the name of a metric" in refused.value.message
    assert "ledger.use_unit" in refused.value.hint


def test_labels_may_be_named() -> None:
    labels = Labels.parse("pod=workload, device=card")
    (row,) = told(
        [series({"workload": "notebook", "namespace": "lab", "card": "c1"}, "1")], labels=labels, unit="ratio"
    ).rows
    assert (row.pod_uid, row.device) == ("u1", "c1")


@pytest.mark.parametrize("text", ["pod", "pod=", "color=red", "pod=a,pod=b", "pod=a b", ""])
def test_labels_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(UseSettingsError, match=r"ledger\.use_labels"):
        Labels.parse(text)


def test_ten_thousand_series_are_ten_thousand_rows() -> None:
    holders = [Holding(f"u{i}", "lab", f"pod-{i}", Instant(0), None) for i in range(1250)]
    use = [series(DCGM | {"pod": f"pod-{i // 8}", "UUID": f"GPU-{i}"}, str(i % 101)) for i in range(10_000)]
    found = told(use, use, holders)
    assert (len(found.rows), found.skipped) == (10_000, {})


_TEXTS = st.one_of(st.floats().map(str), st.text(max_size=5))
_NAMES = st.sampled_from(["", "notebook", "other"])
_METRICS = st.fixed_dictionaries(
    {"__name__": st.sampled_from(["DCGM_FI_DEV_GPU_UTIL", "gpu_gfx_activity"])},
    optional={
        "pod": _NAMES,
        "exported_pod": _NAMES,
        "namespace": st.sampled_from(["lab", ""]),
        "UUID": st.text(max_size=3),
        "gpu": st.sampled_from(["0", "1"]),
        "pod_uid": st.sampled_from(["u1", "u2", "u3"]),
    },
)
_SERIES = st.builds(
    Series, _METRICS, st.lists(st.tuples(st.integers(-7200, 7200).map(lambda s: s + NOON / SECOND), _TEXTS), max_size=4)
)
_HOLDERS = st.lists(
    st.builds(
        holder,
        st.sampled_from(["u1", "u2", "u3"]),
        st.sampled_from(["notebook", "other"]),
        st.integers(-120, 0),
        st.one_of(st.none(), st.integers(1, 120)),
    ),
    max_size=3,
    unique_by=lambda each: each.uid,
)


@given(st.lists(_SERIES, max_size=6), st.lists(_SERIES, max_size=6), _HOLDERS, st.integers(0, 5 * MINUTE))
def test_every_value_is_told_once_or_counted_and_never_of_a_pod_that_held_nothing(
    use: list[Series], memory: list[Series], holders: list[Holding], fresh: int
) -> None:
    found = measured(use, memory, Holders(holders), Reading(CLUSTER, fresh=fresh))
    held = {each.uid: each for each in holders}
    keys = [(row.at, row.pod_uid, row.device) for row in found.rows]
    assert keys == sorted(set(keys))
    for row in found.rows:
        assert held[row.pod_uid].at(row.at)
        assert 0 <= row.utilisation <= 1
        assert row.memory_used is None or row.memory_used >= 0
    values = sum(len(each.values) for each in use)
    assert sum(found.skipped.values()) + len(found.rows) <= values
    assert not values or found.rows or found.skipped
