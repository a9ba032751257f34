"""One request, one answer: what is sent, who signs it, and what each refusal becomes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

import bayplan
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from bayplan.cluster.live import cluster as live
from bayplan.cluster.live.cluster import ODD, LiveCluster
from bayplan.cluster.live.config import ConfigError, ExecEntry, UserEntry, Variable
from bayplan.cluster.live.credentials import CredentialError
from bayplan.cluster.live.faults import Unreachable, Untrusted, error_of
from bayplan.cluster.port import PatchType
from bayplan.model.clock import Instant, VirtualClock, rfc3339, seconds
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
from tests.cluster.live.answering import Answer, Handler, Pki, Request, access, answering

V1 = "client.authentication.k8s.io/v1"
FINE = Answer()
REFUSED = Answer(b'{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":401}', 401)


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The fields of what the live engine warns of."""
    said: list[dict[str, object]] = []
    monkeypatch.setattr(live, "log", SimpleNamespace(warning=lambda _, **fields: said.append(fields)))
    return said


class Seen:
    """A handler that remembers what it was asked."""

    def __init__(self, answer: Answer = FINE) -> None:
        self.requests: list[Request] = []
        self._answer = answer

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        return self._answer


async def ask(handler: Handler, act: Callable[[LiveCluster], object], user: UserEntry | None = None) -> None:
    async with answering(handler) as url, LiveCluster(access(url, user)) as cluster:
        await act(cluster)  # type: ignore[misc]  # any coroutine of the port


# --- what is sent


@pytest.mark.parametrize(
    ("act", "line", "body"),
    [
        pytest.param(lambda c: c.get(POD, "a", "x"), "GET /api/v1/namespaces/x/pods/a", None, id="get"),
        pytest.param(lambda c: c.get(NODE, "n"), "GET /api/v1/nodes/n", None, id="get what has no namespace"),
        pytest.param(
            lambda c: c.get(POD, "a/../b", "x"), "GET /api/v1/namespaces/x/pods/a%2F..%2Fb", None, id="quoted"
        ),
        pytest.param(lambda c: c.list(DEPLOYMENT), "GET /apis/apps/v1/deployments", None, id="list everywhere"),
        pytest.param(
            lambda c: c.list(POD, "x", labels="a=b", fields="spec.nodeName=", limit=5, after="t"),
            "GET /api/v1/namespaces/x/pods?labelSelector=a%3Db&fieldSelector=spec.nodeName%3D&limit=5&continue=t",
            None,
            id="list with selectors and pages",
        ),
        pytest.param(
            lambda c: c.create(CONFIG_MAP, {"a": 1}, "x", dry_run=True, manager="me", strict=True),
            "POST /api/v1/namespaces/x/configmaps?dryRun=All&fieldManager=me&fieldValidation=Strict",
            {"a": 1},
            id="create",
        ),
        pytest.param(
            lambda c: c.update(POD, b'{"a":1}', "a", "x", subresource="status", manager="me"),
            "PUT /api/v1/namespaces/x/pods/a/status?fieldManager=me",
            {"a": 1},
            id="update the status",
        ),
        pytest.param(
            lambda c: c.patch(POD, [{"op": "test"}], "a", "x", type=PatchType.JSON),
            "PATCH /api/v1/namespaces/x/pods/a",
            [{"op": "test"}],
            id="patch",
        ),
        pytest.param(
            lambda c: c.patch(POD, {}, "a", "x", type=PatchType.APPLY, manager="me", force=True, dry_run=True),
            "PATCH /api/v1/namespaces/x/pods/a?dryRun=All&fieldManager=me&force=true",
            {},
            id="apply",
        ),
        pytest.param(
            lambda c: c.delete(POD, "a", "x", grace=0, uid="u", version="7", propagation="Orphan", dry_run=True),
            "DELETE /api/v1/namespaces/x/pods/a",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
                "propagationPolicy": "Orphan",
            },
            id="delete",
        ),
        pytest.param(
            lambda c: c.bind("a", "n", "x", uid="u"),
            "POST /api/v1/namespaces/x/pods/a/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "namespace": "x", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            },
            id="bind",
        ),
        pytest.param(
            lambda c: c.evict("a", "x", grace=5, uid="u", dry_run=True),
            "POST /api/v1/namespaces/x/pods/a/eviction?dryRun=All",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a", "namespace": "x"},
                "deleteOptions": {
                    "kind": "DeleteOptions",
                    "apiVersion": "v1",
                    "gracePeriodSeconds": 5,
                    "preconditions": {"uid": "u"},
                    "dryRun": ["All"],
                },
            },
            id="evict",
        ),
        pytest.param(
            lambda c: c.scale(DEPLOYMENT, "a", "x", 0),
            "PATCH /apis/apps/v1/namespaces/x/deployments/a/scale",
            {"spec": {"replicas": 0}},
            id="scale",
        ),
        pytest.param(
            lambda c: c.logs("a", "x", container="c", previous=True, tail=0),
            "GET /api/v1/namespaces/x/pods/a/log?container=c&previous=true&tailLines=0",
            None,
            id="logs",
        ),
    ],
)
async def test_each_method_has_its_request(act: Callable[[LiveCluster], object], line: str, body: object) -> None:
    seen = Seen()
    await ask(seen, act)
    (request,) = seen.requests
    assert f"{request.method} {request.path}" == line
    assert (msgspec.json.decode(request.body) if request.body else None) == body


async def test_every_request_says_who_sends_it_and_loopback_is_not_compressed() -> None:
    seen = Seen()
    user = UserEntry(token="t", impersonate="bob", impersonate_groups=("dev",))
    await ask(seen, lambda c: c.get(NODE, "n"), user)
    headers = seen.requests[0].headers
    assert headers["user-agent"] == f"bayplan/{bayplan.__version__}"
    assert headers["authorization"] == "Bearer t"
    assert (headers["impersonate-user"], headers["impersonate-group"]) == ("bob", "dev")
    assert headers["accept-encoding"] == "identity"


async def test_the_environment_names_no_proxy_but_the_kubeconfig_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen = Seen()
    await ask(seen, lambda c: c.get(NODE, "n"))
    assert seen.requests[0].path == "/api/v1/nodes/n"
    async with answering(seen) as proxy:
        far = access("http://cluster.example")
        far = msgspec.structs.replace(far, cluster=msgspec.structs.replace(far.cluster, proxy_url=proxy))
        async with LiveCluster(far) as cluster:
            await cluster.get(NODE, "n")
    assert seen.requests[1].path == "http://cluster.example/api/v1/nodes/n"
    assert seen.requests[1].headers["accept-encoding"] == "gzip"


async def test_warnings_are_passed_on() -> None:
    heard: list[str] = []
    answer = Answer(headers={"Warning": '299 - "unknown field \\"a\\"", 299 - "old"'})
    async with answering(Seen(answer)) as url, LiveCluster(access(url), on_warning=heard.append) as cluster:
        await cluster.get(NODE, "n")
    assert heard == ['unknown field "a"', "old"]


async def test_a_deletion_answered_with_a_status_gives_what_was_there() -> None:
    def handler(request: Request) -> Answer:
        if request.method == "DELETE":
            return Answer(b'{"kind":"Status","status":"Success"}')
        return Answer(b'{"metadata":{"name":"a"},"data":{"k":"v"}}')

    async with answering(handler) as url, LiveCluster(access(url)) as cluster:
        assert (await cluster.delete(CONFIG_MAP, "a", "x")).doc()["data"] == {"k": "v"}


# --- who signs


def accepts(token: str, seen: list[str]) -> Handler:
    def handler(request: Request) -> Answer:
        seen.append(request.headers.get("authorization", ""))
        return Answer() if seen[-1] == f"Bearer {token}" else REFUSED

    return handler


async def test_a_token_file_is_read_again_after_a_minute_and_after_a_refusal(tmp_path: Path) -> None:
    file, seen, clock = tmp_path / "token", list[str](), VirtualClock()
    file.write_text("one\n")
    user = UserEntry(token_file=str(file))
    async with answering(accepts("two", seen)) as url, LiveCluster(access(url, user), clock=clock) as cluster:
        with pytest.raises(Unauthorized):
            await cluster.get(NODE, "n")
        file.write_text("two\n")
        await cluster.get(NODE, "n")
        file.write_text("three\n")
        await cluster.get(NODE, "n")
        clock.advance_to(Instant(clock.now() + seconds(61)))
        with pytest.raises(Unauthorized):
            await cluster.get(NODE, "n")
    assert seen == [f"Bearer {each}" for each in ("one", "two", "two", "three")]


def plugin(tmp_path: Path, script: str, **options: str) -> UserEntry:
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    entry = ExecEntry(command=str(file), api_version=V1, env=(Variable("FOLDER", str(tmp_path)),), **options)  # type: ignore[arg-type]  # text only
    return UserEntry(exec=entry)


COUNTING = 'echo x >> "$FOLDER/runs"; echo "{\\"status\\":{\\"token\\":\\"t$(wc -l < $FOLDER/runs)\\"EXPIRY}}"'


async def test_a_plugin_runs_once_and_again_when_refused_or_expired(tmp_path: Path) -> None:
    seen, clock = list[str](), VirtualClock()
    expiry = f',\\"expirationTimestamp\\":\\"{rfc3339(Instant(clock.now() + seconds(60)))}\\"'
    user = plugin(tmp_path, COUNTING.replace("EXPIRY", expiry))

    def handler(request: Request) -> Answer:
        seen.append(request.headers["authorization"])
        return REFUSED if seen[-1] == "Bearer t1" else Answer()

    async with answering(handler) as url, LiveCluster(access(url, user), clock=clock) as cluster:
        await asyncio.gather(cluster.get(NODE, "n"), cluster.get(NODE, "n"))
        await cluster.get(NODE, "n")
        clock.advance_to(Instant(clock.now() + seconds(61)))
        await cluster.get(NODE, "n")
    assert sorted(seen) == [f"Bearer t{number}" for number in (1, 1, 2, 2, 2, 3)]


async def test_a_plugin_hears_what_it_is_asked_for(tmp_path: Path) -> None:
    user = plugin(tmp_path, 'echo "$KUBERNETES_EXEC_INFO" > "$FOLDER/info"; echo \'{"status":{"token":"t"}}\'')
    await ask(Seen(), lambda c: c.get(NODE, "n"), user)
    info = msgspec.json.decode((tmp_path / "info").read_bytes())
    assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_plugin_may_print_a_certificate(tmp_path: Path) -> None:
    server, client = Pki(tmp_path), Pki(tmp_path, "alice")
    status = {"clientCertificateData": client.certificate.decode(), "clientKeyData": client.key.decode()}
    (tmp_path / "credential").write_bytes(msgspec.json.encode({"status": status}))
    user, seen = plugin(tmp_path, 'cat "$FOLDER/credential"'), Seen()
    async with (
        answering(seen, server.server(clients=client)) as url,
        LiveCluster(access(url, user, authority=server)) as cluster,
    ):
        await cluster.get(NODE, "n")
    assert seen.requests[0].peer == "alice"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo oh no >&2; exit 3", "ended with 3: oh no", id="it fails"),
        pytest.param("echo hello", "printed no ExecCredential", id="it prints something else"),
        pytest.param("echo '{}'", "printed neither a token nor a certificate", id="it prints nothing of use"),
    ],
)
async def test_a_plugin_that_does_not_do_is_named(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(CredentialError, match=message) as refusal:
        await ask(Seen(), lambda c: c.get(NODE, "n"), plugin(tmp_path, script))
    assert "try it by hand" in refusal.value.hint


async def test_a_missing_plugin_says_how_to_get_it() -> None:
    user = UserEntry(exec=ExecEntry(command="no-such-plugin", api_version=V1, install_hint="install it\nso"))
    with pytest.raises(CredentialError, match="no-such-plugin cannot be run") as refusal:
        await ask(Seen(), lambda c: c.get(NODE, "n"), user)
    assert refusal.value.hint == "install it so"


def test_a_plugin_of_another_age_is_refused() -> None:
    user = UserEntry(exec=ExecEntry(command="x", api_version="client.authentication.k8s.io/v1alpha1"))
    with pytest.raises(CredentialError, match="v1alpha1"):
        LiveCluster(access("http://x", user))


async def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    server, client, seen = Pki(tmp_path), Pki(tmp_path, "alice"), Seen()
    by_data = UserEntry(client_certificate_data=client.certificate_data, client_key_data=client.key_data)
    by_file = UserEntry(client_certificate=str(client.certificate_file), client_key=str(client.key_file))
    async with answering(seen, server.server(clients=client)) as url:
        for user in (by_data, by_file):
            async with LiveCluster(access(url, user, authority=server)) as cluster:
                await cluster.get(NODE, "n")
    assert [request.peer for request in seen.requests] == ["alice", "alice"]


# --- what cannot be read


async def test_a_bad_object_is_said_once_and_the_others_come(warned: list[dict[str, object]]) -> None:
    bad = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"x","labels":{"n":7}}}}'
    lines = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n%s\n<html>\n%s\n' % (bad, bad.replace(b"7", b"7.5"))
    names = []
    async with answering(Seen(Answer(lines))) as url, LiveCluster(access(url)) as cluster:
        for _ in range(2):
            names += [event.object.name async for event in cluster.watch(POD) if event.object is not None]
    assert names == ["a", "b", "b"] * 2
    assert [(line["code"], line["kind"], line["what"]) for line in warned] == [
        (ODD, "Pod", "x/b: metadata.labels.n cannot be 7"),
        (ODD, "Pod", "a line that is no event: <html>"),
        (ODD, "Pod", "x/b: metadata.labels.n cannot be 7.5"),
    ]


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
