"""A pod whose deletion was asked for did not fail by itself, and what nobody saw is told as such."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.ledger.questions.gone import told
from bayplan.ledger.rows import GpuPodsEvent
from bayplan.model.clock import SECOND, Instant
from tests.ledger.books import event, hour, pod

_ASKED, _ENDED, _GONE = "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z", "2026-01-01T02:00:00Z"
_ONE, _HALF = hour(1), hour(1.5)
_DISAPPEARED = f"its object disappeared at {_GONE}"


def _deleting(version: int, at: Instant = _ONE) -> GpuPodsEvent:
    return event("p", "Deleting", at, version)


def _exit(version: int, code: int, at: Instant = _HALF, **more: Any) -> GpuPodsEvent:
    return event("p", "Exit", at, version, subject=more.pop("subject", "main"), exit_code=code, **more)


def _phase(version: int, value: str, at: Instant = _HALF) -> GpuPodsEvent:
    return event("p", "Phase", at, version, value=value)


@pytest.mark.parametrize(
    ("phase", "events", "sentence"),
    [
        pytest.param(
            "Failed",
            [_deleting(5), _exit(6, 143, reason="Error"), _phase(6, "Failed")],
            f"was deleted by request at {_ASKED}, its container main exited with 143",
            id="deleted, and its container ended by the signal",
        ),
        pytest.param(
            "Succeeded",
            [_deleting(5), _exit(6, 0, reason="Completed"), _phase(6, "Succeeded")],
            f"was deleted by request at {_ASKED}, its container main exited with 0",
            id="deleted, and its container took it well",
        ),
        pytest.param(
            "Failed",
            [_deleting(5), _exit(6, 137, reason="OOMKilled"), _exit(6, 0, subject="side"), _phase(6, "Failed")],
            f"was deleted by request at {_ASKED}, its container main exited with 137, OOMKilled",
            id="of several containers the one that ended badly is named",
        ),
        pytest.param(
            "Failed",
            [_exit(2, 1, hour(0.5)), _deleting(5), _phase(6, "Failed")],
            f"was deleted by request at {_ASKED}",
            id="an exit of before is none of its end",
        ),
        pytest.param(
            "Failed",
            [_exit(5, 1), _phase(5, "Failed"), _deleting(6, hour(1.75))],
            f"failed at {_ENDED}: container main exited with 1",
            id="it failed, and was deleted later",
        ),
        pytest.param(
            "Succeeded",
            [_phase(5, "Succeeded"), _deleting(6, hour(1.5))],
            f"finished its work at {_ENDED}",
            id="it finished, and was deleted within the same second",
        ),
        pytest.param(
            "Failed",
            [_deleting(6, hour(1.5)), _exit(7, 143), _phase(7, "Failed")],
            f"was deleted by request at {_ENDED}, its container main exited with 143",
            id="deleted, and ended within the same second",
        ),
        pytest.param(
            "Failed",
            [_deleting(7), _exit(7, 143), _phase(7, "Failed")],
            f"was deleted by request at {_ASKED}, its container main exited with 143",
            id="where one version tells both, the times decide: deleted first",
        ),
        pytest.param(
            "Failed",
            [_exit(7, 2), _phase(7, "Failed"), _deleting(7, hour(1.75))],
            f"failed at {_ENDED}: container main exited with 2",
            id="where one version tells both, the times decide: failed first",
        ),
    ],
)
def test_what_came_first_is_the_reason(phase: str, events: list[GpuPodsEvent], sentence: str) -> None:
    why = told(pod("p", phase=phase, end_at=hour(1.5), gone_at=hour(2)), [], events)
    assert why.sentence == f"vision/p {sentence}; {_DISAPPEARED}."


def _late(row: GpuPodsEvent) -> GpuPodsEvent:
    """Told by a version that was read an hour after what it tells of."""
    return msgspec.structs.replace(row, observed_at=Instant(row.at + 3600 * SECOND))


@pytest.mark.parametrize(
    ("more", "events", "presence"),
    [
        pytest.param(
            {"phase": "Succeeded", "end_at": hour(0.5)},
            [event("p", "Gone", hour(2), 9, reason="inferred")],
            f"its object disappeared unseen between 2026-01-01T00:30:00Z and {_GONE}",
            id="its end was seen, its disappearance not",
        ),
        pytest.param(
            {"phase": "Succeeded", "end_at": hour(0.5)},
            [_late(_deleting(8, hour(0.75))), event("p", "Gone", hour(2), 9, reason="inferred")],
            f"its object disappeared unseen between 2026-01-01T00:45:00Z and {_GONE}",
            id="it was still there when its deletion was asked for",
        ),
        pytest.param(
            {"phase": "Succeeded", "end_at": hour(0.5)},
            [event("p", "Resized", hour(2), 8), event("p", "Gone", hour(2), 9, reason="inferred")],
            f"its object disappeared unseen between 2026-01-01T00:30:00Z and {_GONE}",
            id="a version that was read while catching up says not when the pod was there",
        ),
        pytest.param(
            {"phase": "Succeeded", "end_at": hour(0.5)},
            [event("p", "Gone", hour(2), 9)],
            _DISAPPEARED,
            id="its disappearance was seen",
        ),
        pytest.param(
            {"end_at": hour(2), "end_inferred": True, "end_after": hour(1.25)},
            [event("p", "Gone", hour(2), 9, reason="inferred")],
            f"it disappeared unseen between 2026-01-01T01:15:00Z and {_GONE}",
            id="neither was seen: the row has the bounds",
        ),
    ],
)
def test_an_inferred_disappearance_is_told_as_one(
    more: dict[str, Any], events: list[GpuPodsEvent], presence: str
) -> None:
    why = told(pod("p", gone_at=hour(2), **more), [], events)
    assert why.sentence.endswith(f"; {presence}.")
    assert (why.gone_after is not None) == ("unseen" in presence)
