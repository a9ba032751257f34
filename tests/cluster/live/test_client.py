"""One request, one answer: what is sent, who signs it, and what cannot be read of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import bayplan
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from bayplan.cluster.live.cluster import ODD, LiveCluster
from bayplan.cluster.live.config import ExecEntry, UserEntry, Variable
from bayplan.cluster.live.credentials import CredentialError
from bayplan.cluster.port import PatchType
from bayplan.model.clock import Instant, VirtualClock, rfc3339, seconds
from bayplan.model.errors import Unauthorized
from tests.cluster.live.answering import REFUSED, Answer, Handler, Pki, Request, Seen, access, answering
from tests.conftest import Logged

V1 = "client.authentication.k8s.io/v1"


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


async def test_a_bad_object_is_said_once_and_the_others_come(logged: Logged) -> None:
    bad = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"x","labels":{"n":7}}}}'
    lines = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n%s\n<html>\n%s\n' % (bad, bad.replace(b"7", b"7.5"))
    names = []
    async with answering(Seen(Answer(lines))) as url, LiveCluster(access(url)) as cluster:
        for _ in range(2):
            names += [event.object.name async for event in cluster.watch(POD) if event.object is not None]
    assert names == ["a", "b", "b"] * 2
    assert [(line["code"], line["kind"], line["what"]) for line in logged() if line["level"] == "warning"] == [
        (ODD, "Pod", "x/b: metadata.labels.n cannot be 7"),
        (ODD, "Pod", "a line that is no event: <html>"),
        (ODD, "Pod", "x/b: metadata.labels.n cannot be 7.5"),
    ]
