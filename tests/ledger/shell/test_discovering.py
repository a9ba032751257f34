"""What a server says of its kinds, also where it says it oddly."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import Kind
from bayplan.ledger.discovering import LiveKinds
from bayplan.model.clock import SystemClock
from bayplan.model.errors import ServerError
from tests.cluster.live.answering import Answer, access, answering

TRAINER = Kind("example.com", "v1", "Trainer", "trainers", namespaced=True)


async def found(body: bytes) -> Kind | None:
    async with answering(lambda _: Answer(body)) as url:
        kinds = LiveKinds(access(url), SystemClock())
        try:
            return await kinds.find("example.com/v1", "Trainer")
        finally:
            await kinds.close()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            b'{"resources":[{"name":"trainers/status","kind":"Trainer"},{"name":"trainers","kind":"Trainer"}]}',
            TRAINER,
            id="a kind, beside its subresource",
        ),
        pytest.param(b'{"resources":[]}', None, id="a version without kinds"),
        pytest.param(b'{"resources":null}', None, id="as Go writes an empty list"),
        pytest.param(b"{}", None, id="no list"),
    ],
)
async def test_what_a_server_has(body: bytes, expected: Kind | None) -> None:
    assert await found(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="a website"),
        pytest.param(b'{"resources":[{"name":1}]}', id="a name that is no text"),
        pytest.param(b'{"resources":[{"name":"\xff","kind":"Trainer"}]}', id="no UTF-8"),
    ],
)
async def test_what_cannot_be_read_is_the_servers_fault_and_asked_again(body: bytes) -> None:
    with pytest.raises(ServerError, match=r"example\.com/v1: the list of its kinds cannot be read"):
        await found(body)
