"""What a run sees of GPUs is what the tally counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.eventlog import Writer
from bayplan.simulate.observer import Observer

_HOUR = 3600 * SECOND
_WHOLE, _SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"


def _object(kind: Kind, document: dict[str, Any]) -> Object:
    return Object.from_raw(kind, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("offered", "asked", "share"),
    [
        pytest.param({_WHOLE: "8"}, {_WHOLE: "8"}, 1.0, id="whole GPUs are whole where others might be shared"),
        pytest.param({_SHARED: "32"}, {_SHARED: "8"}, 0.25, id="shares are parts"),
        pytest.param({_WHOLE: "4", _SHARED: "16"}, {_WHOLE: "2", _SHARED: "8"}, 0.5, id="some of both"),
    ],
)
def test_the_share_of_gpus_is_that_of_the_tally(offered: dict[str, str], asked: dict[str, str], share: float) -> None:
    observer = Observer(Writer(), Instant(0))
    labels = {"nvidia.com/gpu.replicas": "4"}
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": offered}}
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": asked}}]}
    pod = {"metadata": {"name": "p", "namespace": "t", "uid": "u"}, "spec": spec, "status": {"phase": "Running"}}
    observer.note(_object(NODE, node), None, Instant(0), gone=False)
    observer.note(_object(POD, pod), None, Instant(0), gone=False)
    held = observer.tally.usage(Instant(_HOUR)).gpu_hours["t"]
    assert observer.look("gpu") == share == held / 8
