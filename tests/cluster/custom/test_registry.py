"""The kinds of one cluster: what every cluster has, and what it defines itself."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import DEPLOYMENT, JOB, POD, Kind, KindRegistry, ScalePaths, is_built_in
from bayplan.model.errors import NotFound

V1 = Kind("example.com", "v1", "Widget", "widgets", True, ("wd",))
V2 = Kind("example.com", "v2", "Widget", "widgets", True, ("wd",))
OTHER_JOB = Kind("batch.example.com", "v1", "Job", "jobs", True)


def test_what_every_cluster_has_is_there() -> None:
    registry = KindRegistry()
    assert registry.find("apps/v1", "Deployment") is DEPLOYMENT
    assert registry.find("apps/v2", "Deployment") is None
    assert registry.named("po") is POD
    assert registry.qualified("Deployment.apps") is DEPLOYMENT
    assert registry.stem(POD) is POD
    with pytest.raises(NotFound, match='the server doesn\'t have a resource type "wd"'):
        registry.named("wd")


def test_a_kind_is_one_in_all_its_versions() -> None:
    registry = KindRegistry()
    registry.define([V1, V2], ScalePaths("spec.size", "status.size"))
    assert registry.named("wd") is V1
    assert registry.find("example.com/v2", "Widget") is V2
    assert registry.stem(V2) is V1
    assert registry.custom() == [V1]
    assert registry.scale_paths(V2) == ScalePaths("spec.size", "status.size")
    registry.define([V2])
    assert (registry.stem(V2), registry.scale_paths(V2)) == (V1, None)
    registry.undefine(V2)
    assert registry.custom() == []
    assert registry.changes == 3


def test_a_name_that_every_cluster_has_goes_first() -> None:
    registry = KindRegistry()
    registry.define([OTHER_JOB])
    assert not is_built_in(OTHER_JOB)
    assert registry.named("job") is JOB
    assert registry.named("jobs.batch.example.com") is OTHER_JOB
    assert registry.find("batch.example.com/v1", "Job") is OTHER_JOB
