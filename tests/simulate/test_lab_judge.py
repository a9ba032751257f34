"""On the lab, too, a run says which plugin put a VM elsewhere than it was wished."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.objects import Object
from bayplan.model.pods import Pod
from bayplan.simulate.eventlog import Writer
from bayplan.simulate.lab_run import _LabRun, on_lab
from bayplan.simulate.run import Order
from bayplan.simulate.scenario_file import shipped
from bayplan.simulate.vms.reasons import why_elsewhere


def _object(kind: Kind, name: str, **rest: Any) -> Object:
    meta = {"name": name, "namespace": "" if kind is NODE else "t", "uid": name}
    return Object.from_raw(kind, msgspec.json.encode({"metadata": meta, **rest}))


def _pod(name: str, cpu: int, node: str) -> Object:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    return _object(POD, name, spec={"containers": [container], "nodeName": node}, status={"phase": "Pending"})


def test_what_is_known_of_the_cluster_is_what_is_judged_by() -> None:
    """The wished node is full without the pod itself, which is known already as being on the other."""
    offered = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    nodes = [_object(NODE, name, spec={}, status={"allocatable": offered}) for name in ("a", "b")]
    placed = _pod("new", 6, "b")
    known = {(each.kind, each.key): each for each in (*nodes, _pod("old", 4, "a"), placed)}
    run = cast(Any, SimpleNamespace(_known=known, _profiles={}))
    why = why_elsewhere(_LabRun._judge(run, placed.view(Pod)), "a", "b")
    assert why.plugin == "NodeResourcesFit"
    assert "Insufficient cpu" in why.text


@pytest.mark.slow
def test_wishes_that_were_not_followed_have_their_plugins() -> None:
    scenario = shipped("01-initial-placement")
    order = Order(scenario=scenario, name="x", seed=1, engine="lab", duration=scenario.duration.micros)
    try:
        found = asyncio.run(on_lab(order, Writer(), None, stopping=lambda: False)).agreement
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    assert found is not None
    assert sum(found.reasons.values()) == found.elsewhere
    assert found.reasons.get("other", 0) < found.elsewhere  # some may have been overtaken meanwhile
