"""Which resources are GPUs is one rule, for the ledger, for columns and for the picture of `bayplan up`."""

from __future__ import annotations

import asyncio
import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.cli.display.picture import Cell, picture
from bayplan.cli.display.slots import Slots
from bayplan.cli.gpus import gpu_text, gpus_of_node
from bayplan.cli.main import main
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.ledger.rows import Row, SpecBlob
from tests.cli.scenes import NOW
from tests.ledger.books import hour, stream, version, written
from tests.ledger.books import pod as row


def _pod(name: str, resources: dict[str, str], on: str = "") -> Object:
    document = {
        "metadata": {"name": name, "namespace": "lab", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": resources}}], "nodeName": on},
        "status": {"phase": "Running" if on else "Pending"},
    }
    return Object.from_raw(POD, msgspec.json.encode(document))


def _node(resources: dict[str, str], **labels: str) -> Object:
    document: dict[str, Any] = {
        "metadata": {"name": "n", "labels": {key.replace("__", "/"): text for key, text in labels.items()}},
        "status": {"allocatable": {"cpu": "64", **resources}},
    }
    return Object.from_raw(NODE, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ({"nvidia.com/gpu": "8"}, "8"),
        ({"nvidia.com/gpu.shared": "1"}, "1 gpu.shared"),
        ({"nvidia.com/mig-1g.10gb": "2"}, "2 mig-1g.10gb"),
        ({"nvidia.com/mig-1g.10gb.shared.memory": "2"}, "<none>"),
        ({"habana.ai/gaudi": "8"}, "8 gaudi"),
        ({"google.com/tpu": "4"}, "4 tpu"),
        ({"amd.com/cpx_nps4": "1"}, "1 cpx_nps4"),
        ({"gpu.intel.com/xe": "1", "gpu.intel.com/xe_monitoring": "1"}, "1 xe"),
        ({"rebellions.ai/ATOM": "1"}, "<none>"),
        ({"cpu": "1"}, "<none>"),
    ],
)
def test_a_column_counts_what_the_ledger_counts(resources: dict[str, str], text: str) -> None:
    assert gpu_text(_pod("p", resources)) == text
    assert bool(gpus_of_node(_node(resources))) == (text != "<none>")


@pytest.mark.parametrize(
    ("node", "asked", "model", "cells"),
    [
        pytest.param(
            _node({"habana.ai/gaudi": "3"}, **{"habana.ai__gaudi.product": "HL-225"}),
            {"habana.ai/gaudi": "2"},
            "HL-225",
            (Cell("lab", 1, 1), Cell("lab", 1, 1), Cell()),
            id="devices of another vendor",
        ),
        pytest.param(
            _node(
                {"nvidia.com/gpu": "4"},
                **{"nvidia.com__gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com__gpu.replicas": "2"},
            ),
            {"nvidia.com/gpu": "3"},
            "A100",
            (Cell("lab", 2, 2), Cell("lab", 1, 2)),
            id="shared under the usual name",
        ),
        pytest.param(
            _node(
                {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "4"},
                **{"nvidia.com__gpu.product": "H100", "nvidia.com__gpu.replicas": "4"},
            ),
            {"nvidia.com/gpu": "1"},
            "H100",
            (Cell("lab", 4, 4), Cell("", 0, 4)),
            id="a whole one beside one that is shared takes a whole cell",
        ),
        pytest.param(
            _node({"google.com/tpu": "1"}, **{"cloud.google.com__gke-tpu-accelerator": "tpu-v5-lite"}),
            {"cpu": "1"},
            "tpu-v5-lite",
            (Cell(),),
            id="a pod without any holds none",
        ),
    ],
)
def test_the_picture_has_a_cell_for_every_gpu(
    node: Object, asked: dict[str, str], model: str, cells: tuple[Cell, ...]
) -> None:
    (drawn,) = picture([node], [_pod("p", asked, "n")], [], NOW, Slots()).nodes
    assert (drawn.model, drawn.cells) == (model, cells)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ({"nvidia.com/gpu": "8"}, "8 GPU"),
        ({"nvidia.com/gpu.shared": "1"}, "1 share"),
        ({"habana.ai/gaudi": "2"}, "2 gaudi"),
        ({"nvidia.com/gpu": "0"}, ""),
        ({"cpu": "1"}, ""),
    ],
)
def test_the_queue_says_what_is_asked_for(resources: dict[str, str], text: str) -> None:
    assert [each.asks for each in picture([], [_pod("p", resources)], [], NOW, Slots()).waiting] == [text]


@pytest.mark.parametrize(
    ("flags", "gpus"),
    [
        pytest.param((), "<none>", id="by default it is none"),
        pytest.param(("--set", "ledger.gpu_resources=rebellions.ai/ATOM"), "8 ATOM", id="as set"),
    ],
)
def test_the_ledger_shows_what_is_set(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...], gpus: str
) -> None:
    def renamed(each: Row) -> Row:
        if not isinstance(each, SpecBlob):
            return each
        return msgspec.structs.replace(each, data=each.data.replace(b"nvidia.com/gpu", b"rebellions.ai/ATOM"))

    rows = [
        row("npu", "lab"),
        *map(renamed, version(row("npu", "lab"), hour(1), 1, "Running", "n")),
        stream("pods", hour(2)),
    ]

    async def write() -> None:
        await (await written(str(tmp_path / "ledger.db"), rows)).close()

    asyncio.run(write())
    where = ("--database", f"sqlite:///{tmp_path / 'ledger.db'}")
    assert main(["ledger", "get", "pods", "-A", "-o", "csv", *where, *flags]) == 0
    (found,) = csv.DictReader(io.StringIO(capfd.readouterr().out))
    assert found["GPUS"] == gpus
