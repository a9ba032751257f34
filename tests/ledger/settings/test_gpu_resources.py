"""Which resources are GPUs is a matter of vendors, and further ones are set."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cluster.kinds import EVENT, POD
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import GpuPod, PendingPeriod, PodResource, Rows
from bayplan.ledger.settings import gpu_vendors
from bayplan.service.settings import LedgerSettings
from tests.ledger.differ.lives import at, event
from tests.ledger.process.running import happens, served, stored
from tests.ledger.settings.effects import given, running, sees
from tests.ledger.shell.scenes import gpu_pod

ATOM = "rebellions.ai/ATOM"


@pytest.mark.parametrize(
    ("setting", "resource", "vendor"),
    [
        pytest.param("none", ATOM, None, id="by default it is none"),
        pytest.param(ATOM, ATOM, "configured", id="by its name"),
        pytest.param("rebellions.ai/*", ATOM, "configured", id="by a pattern"),
        pytest.param(ATOM, "rebellions.ai/ATOM2", None, id="a name is not a beginning"),
        pytest.param(ATOM, "nvidia.com/gpu", "NVIDIA", id="those of known vendors stay"),
        pytest.param("gpu.intel.com/tiles", "gpu.intel.com/tiles", "configured", id="what is no device else"),
    ],
)
def test_a_resource_is_a_gpu_as_set(setting: str, resource: str, vendor: str | None) -> None:
    settings = LedgerSettings() if setting == "none" else given(gpu_resources=setting).ledger
    found = gpu_vendors(settings).of(resource)
    assert (found and found.name) == vendor


@pytest.mark.parametrize("configured", [True, False])
def test_quotas_of_such_resources_are_told_of(configured: bool) -> None:
    words = f'pods "a" is forbidden: exceeded quota: team, requested: requests.{ATOM}=8'
    settings = given(gpu_resources=ATOM).ledger if configured else LedgerSettings()
    rows = Rows()
    told: Object = event("FailedCreate", words, "Job")
    Recording("c1", vendors=gpu_vendors(settings)).take(EVENT, [Change("ADDED", told)], When(at(9)), rows)
    assert (rows.count(PendingPeriod) == 1) is configured


@pytest.mark.slow
@sees("ledger.gpu_resources")
async def test_pods_of_further_resources_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = gpu_pod("npu")
    amounts = {"cpu": "1", ATOM: "2"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    async with served(tmp_path) as world:
        for name, values in (("default", {}), ("set", {"gpu_resources": ATOM})):
            url = f"sqlite:///{tmp_path / name}.db"

            async def both(url: str = url, wanted: int = 1 + len(values)) -> bool:
                return len(await stored(url, GpuPod)) == wanted

            if name == "default":
                await world.cluster.create(POD, pod, "default")
                await world.cluster.create(POD, gpu_pod("gpu"), "default")
            elsewhere = {"database": url, "spool": str(tmp_path / f"spool-{name}"), "election": "off"}
            async with running(world, monkeypatch, **elsewhere, **values):
                await happens(both)
        found = {each.resource: each.gpu_allocated for each in await stored(url, PodResource)}
    assert found == {ATOM: 2000, "nvidia.com/gpu": 1000}
