"""One request, no answer: what goes wrong on the way, and what each refusal becomes."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.kinds import NODE
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import ConfigError, UserEntry
from bayplan.cluster.live.faults import Unreachable, Untrusted, error_of
from bayplan.model.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    BayplanError,
    Cause,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from tests.cluster.live.answering import REFUSED, Pki, Seen, access, answering

# --- what goes wrong on the way


async def fault(url: str, user: UserEntry | None = None, authority: Pki | None = None) -> BayplanError:
    with pytest.raises(BayplanError) as caught:
        async with LiveCluster(access(url, user, authority=authority)) as cluster, asyncio.timeout(5):
            await cluster.get(NODE, "n")
    error = caught.value
    assert "\n" not in error.message
    assert error.hint
    return error


async def test_a_port_that_nobody_listens_on(unused_tcp_port: int) -> None:
    error = await fault(f"https://127.0.0.1:{unused_tcp_port}")
    assert isinstance(error, Unreachable)
    assert error.message.endswith("connection refused")


async def test_a_name_that_does_not_exist() -> None:
    error = await fault("https://no-such-host.invalid")
    assert isinstance(error, Unreachable)
    assert "no such host" in error.message


async def test_a_server_that_accepts_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = await fault(f"https://127.0.0.1:{silent.getsockname()[1]}")
    assert isinstance(error, Unreachable)


async def test_a_server_without_tls() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        error = await fault(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(error, Unreachable)
    assert "no TLS connection" in error.message


@pytest.mark.parametrize(
    ("start", "message"),
    [
        pytest.param(-30, "the server's certificate has expired", id="expired"),
        pytest.param(5, "the server's certificate is not valid yet", id="not yet valid"),
    ],
)
async def test_a_certificate_out_of_its_time(tmp_path: Path, start: int, message: str) -> None:
    server = Pki(tmp_path, days=10, start=start)
    async with answering(Seen(), server.server()) as url:
        error = await fault(url, authority=server)
    assert isinstance(error, Untrusted)
    assert message in error.message


async def test_a_certificate_of_an_unknown_authority(tmp_path: Path) -> None:
    async with answering(Seen(), Pki(tmp_path).server()) as url:
        error = await fault(url, authority=Pki(tmp_path, "another"))
    assert isinstance(error, Untrusted)
    assert "is signed by an authority that is not trusted" in error.message


async def test_a_certificate_for_another_address(tmp_path: Path) -> None:
    server = Pki(tmp_path)
    async with answering(Seen(), server.server()) as url:
        error = await fault(url.replace("127.0.0.1", "localhost"), authority=server)
    assert isinstance(error, Untrusted)
    assert "is for another name" in error.message


async def test_another_name_may_be_expected(tmp_path: Path) -> None:
    server = Pki(tmp_path)
    async with answering(Seen(), server.server()) as url:
        there = access(url.replace("127.0.0.1", "localhost"), authority=server)
        named = msgspec.structs.replace(there.cluster, tls_server_name="127.0.0.1")
        async with LiveCluster(msgspec.structs.replace(there, cluster=named)) as cluster:
            await cluster.get(NODE, "n")


async def test_a_wrong_token_and_an_expired_client_certificate(tmp_path: Path) -> None:
    async with answering(Seen(REFUSED)) as url:
        wrong = await fault(url, UserEntry(token="wrong"))
        old = Pki(tmp_path, "old", days=1, start=-3)
        expired = await fault(
            url, UserEntry(client_certificate_data=old.certificate_data, client_key_data=old.key_data)
        )
    assert isinstance(wrong, Unauthorized)
    assert 'credentials of context "test" (401)' in wrong.message
    assert "mend the user of this context in kubeconfig" in wrong.hint
    assert "the client certificate expired on " in expired.hint


def test_a_key_that_does_not_belong_to_its_certificate(tmp_path: Path) -> None:
    user = UserEntry(
        client_certificate_data=Pki(tmp_path, "a").certificate_data, client_key_data=Pki(tmp_path, "b").key_data
    )
    with pytest.raises(ConfigError, match="client-certificate or client-key cannot be used") as refusal:
        LiveCluster(access("https://x", user))
    assert "belong together" in refusal.value.hint


# --- what the server refuses

CANNOT = (
    'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "vision"',
    'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
)


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", BadRequest),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", MethodNotAllowed),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (409, "SomethingNew", Conflict),
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (413, "RequestEntityTooLarge", BadRequest),
        (415, "UnsupportedMediaType", UnsupportedMediaType),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (504, "Timeout", ServerError),
    ],
)
def test_a_status_becomes_its_error(code: int, reason: str, expected: type[ApiError]) -> None:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "m"}
    assert type(error_of(code, msgspec.json.encode(body))) is expected
    assert type(error_of(0, msgspec.json.encode(body))) is expected


def test_causes_and_details_are_kept() -> None:
    cause = {"field": "spec.a", "reason": "FieldValueInvalid", "message": "no"}
    details = {"name": "p", "kind": "Pod", "causes": [cause], "retryAfterSeconds": 10}
    error = error_of(422, msgspec.json.encode({"kind": "Status", "message": "m", "details": details}))
    assert error.causes == (Cause("spec.a", "FieldValueInvalid", "no"),)
    assert (error.details.name, error.details.retryAfterSeconds) == ("p", 10)


def test_who_answers_in_the_servers_place_is_quoted() -> None:
    error = error_of(502, b"<html>\n  bad gateway</html>", retry_after="5")
    assert error.message == "the server answered 502: <html> bad gateway</html>"
    assert error.details.retryAfterSeconds == 5


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (CANNOT[0], "ask for a role that lets alice list pods in namespace vision"),
        (CANNOT[1], "ask for a role that lets alice list nodes in the whole cluster"),
        ("exceeded quota: q, requested: pods=1", ""),
    ],
    ids=["in a namespace", "everywhere", "not about rights"],
)
def test_a_missing_right_says_what_to_ask_for(message: str, hint: str) -> None:
    assert error_of(403, msgspec.json.encode({"kind": "Status", "message": message})).hint == hint
