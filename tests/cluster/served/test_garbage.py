"""Garbage gets the right status, and the server stays up."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cluster.served.raw import Raw

JSON = {"Content-Type": "application/json"}
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "reason"),
    [
        pytest.param("GET", "/api/v1/pods", b"", {"Authorization": ""}, 401, "Unauthorized", id="no token"),
        pytest.param(
            "GET", "/api/v1/pods", b"", {"Authorization": "Bearer x"}, 401, "Unauthorized", id="another token"
        ),
        pytest.param("POST", MAPS, b"{", JSON, 400, "BadRequest", id="half a document"),
        pytest.param("POST", MAPS, b"\xff\xfe", JSON, 400, "BadRequest", id="no text"),
        pytest.param("POST", MAPS, b"[]", JSON, 400, "BadRequest", id="a list"),
        pytest.param("POST", MAPS, b"{}", {"Content-Type": "text/html"}, 415, "UnsupportedMediaType", id="a web page"),
        pytest.param("PATCH", f"{MAPS}/x", b"{}", JSON, 415, "UnsupportedMediaType", id="a patch of no type"),
        pytest.param("POST", MAPS, b'{"data":5}', JSON, 400, "BadRequest", id="a wrong type"),
        pytest.param("POST", MAPS, b"{}", JSON, 422, "Invalid", id="nothing in it"),
        pytest.param("BREW", MAPS, b"", {}, 405, "MethodNotAllowed", id="a verb that is none"),
        pytest.param("GET", "/api/v1/teapots", b"", {}, 404, "NotFound", id="a resource that is none"),
        pytest.param("GET", "/../../etc/passwd", b"", {}, 404, "NotFound", id="a path out of here"),
        pytest.param("GET", f"{MAPS}?limit=x", b"", {}, 400, "BadRequest", id="a limit that is no number"),
        pytest.param("GET", f"{MAPS}?labelSelector=a+in+(", b"", {}, 400, "BadRequest", id="half a selector"),
        pytest.param("DELETE", f"{MAPS}/none", b"", {}, 404, "NotFound", id="nothing to delete"),
    ],
)
async def test_what_cannot_be_answered_is_refused(
    raw: Raw, method: str, path: str, body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    got, document = await raw.ask(method, path, body, headers)
    assert (got, document["reason"]) == (status, reason)
    assert (await raw.ask("GET", "/livez"))[0] == 200


async def test_a_body_of_a_hundred_megabytes_is_not_read(raw: Raw) -> None:
    reader, writer = await raw.connect()
    writer.write(raw.head("POST", MAPS, {**JSON, "Content-Length": str(100 << 20)}))
    first = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    assert first.split()[1] == b"413"


async def test_a_body_that_never_ends_is_cut(raw: Raw) -> None:
    reader, writer = await raw.connect()
    writer.write(raw.head("POST", MAPS, {**JSON, "Transfer-Encoding": "chunked"}))
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for _ in range(64):
        writer.write(chunk)
    first = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    assert first.split()[1] == b"413"


async def test_half_open_connections_and_idle_watches_keep_nobody_else_waiting(raw: Raw) -> None:
    half = [await raw.connect() for _ in range(20)]
    for _, writer in half:
        writer.write(b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n")
    watches = []
    for _ in range(200):
        reader, writer = await raw.connect()
        writer.write(raw.head("GET", f"{MAPS}?watch=true"))
        watches.append((reader, writer))
    status, _ = await raw.ask("POST", MAPS, json.dumps({"metadata": {"name": "a"}}).encode(), JSON)
    assert status == 201
    for reader, _ in watches:
        await asyncio.wait_for(reader.readuntil(b'"name":"a"'), 10)
    for _, writer in (*half, *watches):
        writer.close()
    assert (await raw.ask("GET", "/livez"))[0] == 200


@pytest.mark.slow
async def test_a_thousand_idle_watches(raw: Raw) -> None:
    watches = []
    for _ in range(1000):
        _, writer = await raw.connect()
        writer.write(raw.head("GET", "/api/v1/pods?watch=true"))
        watches.append(writer)
    assert (await raw.ask("GET", MAPS))[0] == 200
    for writer in watches:
        writer.close()
