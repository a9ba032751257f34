"""The texts of a failure, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from bayplan.scheduling.decision import Decision, Outcome, Preemption
from bayplan.scheduling.framework import Profile, Refusal
from bayplan.scheduling.messages import event, fit_error, with_preemption
from bayplan.scheduling.profiles import default_profile

PROFILE = default_profile()
CPU = Refusal("NodeResourcesFit", ("Insufficient cpu",))
BOTH = Refusal("NodeResourcesFit", ("Insufficient cpu", "Insufficient memory"))
TAINT = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), hopeless=True)
CONFLICT = Refusal("NodeAffinity", ("pod affinity terms conflict",), hopeless=True)
IN_USE = Refusal("VolumeRestrictions", ("node has pod using PersistentVolumeClaim",))
LATE = Refusal("NodeDeclaredFeatures", ("no",), hopeless=True)
SIMULTANEOUSLY = Refusal("", ("node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously",), True)


@pytest.mark.parametrize(
    ("nodes", "refusals", "whole", "text"),
    [
        pytest.param(
            3, [CPU, CPU, TAINT], None, "1 node(s) had untolerated taint(s), 2 Insufficient cpu.", id="counts"
        ),
        pytest.param(2, [BOTH, CPU], None, "1 Insufficient memory, 2 Insufficient cpu.", id="a node with two reasons"),
        pytest.param(
            16,
            [CPU] * 2 + [TAINT] * 14,
            None,
            "14 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="sorted as text, not as numbers",
        ),
        pytest.param(9, [], CONFLICT, "pod affinity terms conflict.", id="a refusal of all nodes is not counted"),
    ],
)
def test_the_fit_error_counts_reasons(
    nodes: int, refusals: Sequence[Refusal], whole: Refusal | None, text: str
) -> None:
    assert fit_error(nodes, Counter(refusals).items(), whole) == f"0/{nodes} nodes are available: {text}"


def test_without_nodes_there_is_another_text() -> None:
    assert fit_error(0, []) == "no nodes available to schedule pods"


def failed(whole: Refusal | None = None, nodes: int = 1, restricting: tuple[str, ...] = ()) -> Decision:
    return Decision(
        ("default", "p"),
        Outcome.UNSCHEDULABLE,
        nodes=nodes,
        whole=whole,
        restricting=restricting,
        fit_error="No.",
    )


NOBODY = Preemption(message="0/1 nodes are available: 1 No preemption victims found for incoming pod.")
NOBODY_TOLD = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
FOUND = Preemption(node="a")
SILENT = msgspec.structs.replace(PROFILE, claims=False)


@pytest.mark.parametrize(
    ("decision", "profile", "preemption", "text"),
    [
        pytest.param(
            failed(), PROFILE, NOBODY, f"No. no new claims to deallocate, {NOBODY_TOLD}", id="nobody can be evicted"
        ),
        pytest.param(failed(), PROFILE, FOUND, "No.", id="a node is about to be freed"),
        pytest.param(failed(), PROFILE, None, "No. no new claims to deallocate", id="preemption is off"),
        pytest.param(failed(), SILENT, NOBODY, f"No. {NOBODY_TOLD}", id="DynamicResources is off"),
        pytest.param(failed(), SILENT, None, "No.", id="nothing comes after filtering"),
        pytest.param(failed(CONFLICT), PROFILE, NOBODY, "No. not found", id="broken off before claims were asked"),
        pytest.param(
            failed(SIMULTANEOUSLY, restricting=("NodeAffinity", "VolumeBinding")),
            PROFILE,
            NOBODY,
            "No. not found",
            id="node names that contradict each other",
        ),
        pytest.param(
            failed(LATE),
            PROFILE,
            NOBODY,
            f"No. no new claims to deallocate, {NOBODY_TOLD}",
            id="broken off after claims were asked",
        ),
        pytest.param(
            failed(IN_USE),
            PROFILE,
            NOBODY,
            f"No. no new claims to deallocate, {NOBODY_TOLD}",
            id="a refusal of all nodes that evicting may cure",
        ),
        pytest.param(failed(nodes=0), PROFILE, NOBODY, "No.", id="no nodes at all"),
    ],
)
def test_the_event_adds_what_came_of_it(
    decision: Decision, profile: Profile, preemption: Preemption | None, text: str
) -> None:
    assert event(decision, profile, preemption) == text
    told = with_preemption(decision, profile, preemption)
    assert (told.message, told.preemption, told.fit_error) == (text, preemption, "No.")
