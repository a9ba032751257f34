"""`face`, `cluster` and `home`: every test of the contract runs on every face, in a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from bayplan.cluster.kinds import NAMESPACE
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.port import Cluster
from tests.cluster.contract.faces import FACES, Face

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def bare_lab() -> Iterator[Lab]:
    """A real API server with nothing that moves by itself."""
    options = LabOptions(controllers=False, scheduler=False, kwok=False, service_accounts=False)
    try:
        running = Lab(options, name="contract")
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    with running:
        yield running


@pytest.fixture(params=["embedded", *(pytest.param(name, marks=pytest.mark.slow) for name in ("served", "real"))])
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    async with FACES[request.param](request) as face:
        yield face


@pytest.fixture
def cluster(face: Face) -> Cluster:
    return face.cluster


@pytest.fixture
async def home(cluster: Cluster) -> str:
    """The name of a namespace that belongs to the test."""
    created = await cluster.create(NAMESPACE, {"metadata": {"name": f"contract-{next(_NUMBERS)}"}})
    return created.name
