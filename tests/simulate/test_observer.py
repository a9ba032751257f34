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
_AMD, _SLICE = "amd.com/gpu", "nvidia.com/mig-1g.5gb"


def _object(kind: Kind, document: dict[str, Any]) -> Object:
    return Object.from_raw(kind, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("offered", "asked", "share", "product"),
    [
        pytest.param({_WHOLE: "8"}, {_WHOLE: "8"}, 1.0, "A100", id="whole GPUs are whole where others might be shared"),
        pytest.param({_SHARED: "32"}, {_SHARED: "8"}, 0.25, "A100", id="shares are parts"),
        pytest.param({_WHOLE: "4", _SHARED: "16"}, {_WHOLE: "2", _SHARED: "8"}, 0.5, "A100", id="some of both"),
        pytest.param({_WHOLE: "32"}, {_WHOLE: "4"}, 0.125, "A100-SHARED", id="shares may have the name of whole ones"),
        pytest.param({_AMD: "8"}, {_AMD: "2"}, 0.25, "", id="GPUs of another maker are GPUs"),
        pytest.param({_SLICE: "8"}, {_SLICE: "1"}, 0.125, "", id="a part that is offered as a device counts as one"),
    ],
)
def test_the_share_of_gpus_is_that_of_the_tally(
    offered: dict[str, str], asked: dict[str, str], share: float, product: str
) -> None:
    observer = Observer(Writer(), Instant(0))
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": product}
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": offered}}
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": asked}}]}
    pod = {"metadata": {"name": "p", "namespace": "t", "uid": "u"}, "spec": spec, "status": {"phase": "Running"}}
    observer.note(_object(NODE, node), None, Instant(0), gone=False)
    observer.note(_object(POD, pod), None, Instant(0), gone=False)
    held = observer.tally.usage(Instant(_HOUR)).gpu_hours["t"]
    assert observer.look("gpu") == share == held / 8
