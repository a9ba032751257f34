"""Who tolerates what, and for how long."""

from __future__ import annotations

import pytest

from bayplan.model.taints import (
    HARD_EFFECTS,
    SOFT_EFFECTS,
    Taint,
    Toleration,
    count_untolerated,
    first_untolerated,
    seconds_until_eviction,
)

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")
SOFT = Taint(key="spot", effect="PreferNoSchedule")
GONE = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")
SICK = Taint(key="sick", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule"), True, id="all equal"),
        pytest.param(
            Toleration(key="gpu", value="a100"), True, id="no operator means Equal, no effect means every effect"
        ),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="Exists takes any value"),
        pytest.param(Toleration(operator="Exists"), True, id="Exists without a key takes any key"),
        pytest.param(Toleration(value="a100"), True, id="no key stands for every key, even with Equal"),
        pytest.param(Toleration(key="gpu", value="h100"), False, id="another value does not help"),
        pytest.param(Toleration(key="gpus", operator="Exists"), False, id="another key does not help"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, id="another effect does not help"),
        pytest.param(Toleration(key="gpu", operator="Gt", value="1"), False, id="numeric operators are off"),
    ],
)
def test_a_toleration(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(GPU) is tolerated


def test_only_taints_of_the_asked_effects_count() -> None:
    assert first_untolerated((SOFT, GPU, SICK), (), HARD_EFFECTS) == GPU
    assert first_untolerated((SOFT, GPU), (Toleration(key="gpu", operator="Exists"),), HARD_EFFECTS) is None
    assert count_untolerated((SOFT, GPU, SICK), (), SOFT_EFFECTS) == 1


@pytest.mark.parametrize(
    ("tolerations", "stay"),
    [
        pytest.param((), 0, id="without a toleration it goes at once"),
        pytest.param((Toleration(operator="Exists"),), None, id="a toleration without a time is for ever"),
        pytest.param(
            (Toleration(key=GONE.key, operator="Exists", toleration_seconds=300),), 0, id="one of two is not enough"
        ),
        pytest.param(
            (
                Toleration(key="sick", operator="Exists", toleration_seconds=60),
                Toleration(operator="Exists", toleration_seconds=300),
            ),
            60,
            id="the shortest time wins",
        ),
        pytest.param(
            (Toleration(operator="Exists"), Toleration(operator="Exists", toleration_seconds=5)),
            None,
            id="for each taint only the first toleration that covers it counts",
        ),
        pytest.param((Toleration(operator="Exists", toleration_seconds=-5),), 0, id="a negative time is none"),
    ],
)
def test_how_long_a_pod_may_stay(tolerations: tuple[Toleration, ...], stay: int | None) -> None:
    assert seconds_until_eviction((GPU, GONE, SICK), tolerations) == stay


def test_a_taint_is_written_as_kubectl_writes_it() -> None:
    assert [str(one) for one in (GPU, SOFT, Taint(key="a"))] == ["gpu=a100:NoSchedule", "spot:PreferNoSchedule", "a"]
