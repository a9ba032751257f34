"""`face`, `cluster` and `home`: every test of the contract runs on every face, in a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from bayplan.cluster.kinds import NAMESPACE
from bayplan.cluster.port import Cluster
from tests.cluster.contract.faces import FACES, Face

_NUMBERS = itertools.count()


@pytest.fixture(params=sorted(FACES))
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    async with FACES[request.param]() as face:
        yield face


@pytest.fixture
def cluster(face: Face) -> Cluster:
    return face.cluster


@pytest.fixture
async def home(cluster: Cluster) -> str:
    """The name of a namespace that belongs to the test."""
    created = await cluster.create(NAMESPACE, {"metadata": {"name": f"contract-{next(_NUMBERS)}"}})
    return created.name
