"""Who we say we are, in each request: a fixed token, a file whose token is renewed, a program that prints credentials.

A credential gives the Authorization header, and after a refusal (401) says whether a second try is worth it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import sys
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bayplan.cluster.live.config import Access, ExecEntry
from bayplan.cluster.live.trust import load_certificate
from bayplan.model.clock import Clock, Instant, parse_rfc3339, seconds
from bayplan.model.errors import PermanentError

_REREAD = seconds(60)
"""How old a token file's content may get: the kubelet renews it at 80 % of its life, at least ten minutes."""
_EXEC_VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1"))


class CredentialError(PermanentError):
    """Credentials could not be had: the token's file is missing, or the exec plugin failed."""

    code = "BP-K004"


class Credentials(Protocol):
    """What signs requests."""

    async def header(self) -> str:
        """The value of the Authorization header; empty where there is none. Raises CredentialError."""
        ...

    def refused(self, header: str) -> bool:
        """The server answered 401 to this header. Forget it; True when a second try may succeed."""
        ...


class Fixed:
    """The same header always."""

    def __init__(self, header: str = "") -> None:
        self._header = header

    async def header(self) -> str:
        return self._header

    def refused(self, header: str) -> bool:  # noqa: ARG002 - the protocol's
        return False


class TokenFile:
    """A token that somebody renews in a file, as the kubelet does for pods."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = Instant(0)

    async def header(self) -> str:
        if not self._token or self._clock.now() - self._read_at > _REREAD:
            self._token = self._read()
            self._read_at = self._clock.now()
        return f"Bearer {self._token}"

    def _read(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            message = f"{self._path}: {error.strerror}"
            raise CredentialError(message, hint="check tokenFile in the kubeconfig") from error

    def refused(self, header: str) -> bool:
        self._token = ""
        return f"Bearer {self._read()}" != header


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: str | None = None
    client_certificate_data: str = ""
    client_key_data: str = ""


def _bearer(status: _ExecStatus) -> str:
    return f"Bearer {status.token}" if status.token else ""


class _ExecCredential(msgspec.Struct, frozen=True):
    status: _ExecStatus | None = None


class ExecPlugin:
    """A program that prints an ExecCredential, run when the one before has expired or was refused."""

    def __init__(self, plugin: ExecEntry, access: Access, context: ssl.SSLContext, clock: Clock) -> None:
        if plugin.api_version not in _EXEC_VERSIONS:
            raise CredentialError(
                f'{access.origin}: exec plugin {plugin.command}: unknown apiVersion "{plugin.api_version}"',
                hint=f"known are {', '.join(_EXEC_VERSIONS)}; update the plugin and write its kubeconfig entry anew",
            )
        self._plugin = plugin
        self._access = access
        self._context = context
        self._clock = clock
        self._running = asyncio.Lock()
        self._held: _ExecStatus | None = None
        self._until: Instant | None = None

    async def header(self) -> str:
        async with self._running:  # many requests wait for one run
            if self._held is None or (self._until is not None and self._clock.now() >= self._until):
                self._held = await self._run()
                expires = self._held.expiration_timestamp
                self._until = parse_rfc3339(expires) if expires else None
            return _bearer(self._held)

    def refused(self, header: str) -> bool:
        if self._held is not None and _bearer(self._held) == header:  # else another request has seen to it already
            self._held = None
        return True

    async def _run(self) -> _ExecStatus:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *(plugin.args or ()),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,  # a person may be asked to log in
                env=os.environ | {each.name: each.value for each in plugin.env or ()} | self._info(interactive),
            )
        except OSError as error:
            hint = " ".join(plugin.install_hint.split()) or "install it, or check users[].exec.command"
            raise self._failed(f"cannot be run ({error.strerror})", hint) from error
        output, complaint = await process.communicate()
        if process.returncode:
            last = (complaint or b"").decode(errors="replace").strip().splitlines()[-1:]
            raise self._failed(f"ended with {process.returncode}{': ' if last else ''}{''.join(last)}")
        return self._read(output)

    def _read(self, output: bytes) -> _ExecStatus:
        try:
            status = msgspec.json.decode(output, type=_ExecCredential).status
        except msgspec.DecodeError as error:
            raise self._failed(f"printed no ExecCredential ({error})") from error
        if status is None or not (status.token or status.client_certificate_data):
            raise self._failed("printed neither a token nor a certificate")
        if status.client_certificate_data:
            try:
                load_certificate(
                    self._context, status.client_certificate_data.encode(), status.client_key_data.encode()
                )
            except (OSError, ValueError) as error:
                raise self._failed(f"printed a certificate that cannot be used ({error})") from error
        return status

    def _info(self, interactive: bool) -> dict[str, str]:
        cluster = self._access.cluster
        spec: dict[str, Any] = {"interactive": interactive}
        known: dict[str, Any] = {
            "server": cluster.server,
            "certificate-authority-data": cluster.certificate_authority_data,
            "tls-server-name": cluster.tls_server_name,
            "proxy-url": cluster.proxy_url,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        }
        shown = {"cluster": {name: value for name, value in known.items() if value}}
        info = {
            "apiVersion": self._plugin.api_version,
            "kind": "ExecCredential",
            "spec": spec | shown if self._plugin.provide_cluster_info else spec,
        }
        return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _failed(self, what: str, hint: str = "") -> CredentialError:
        command = " ".join((self._plugin.command, *(self._plugin.args or ())))
        return CredentialError(f"exec plugin {self._plugin.command} {what}", hint=hint or f"try it by hand: {command}")


def credentials_of(access: Access, context: ssl.SSLContext, clock: Clock) -> Credentials:
    """How this user signs; kubectl's order where several ways are given."""
    user = access.user
    if user.token_file:
        return TokenFile(Path(user.token_file), clock)
    if user.token:
        return Fixed(f"Bearer {user.token}")
    if user.username:
        return Fixed("Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode())
    if user.exec is not None:
        return ExecPlugin(user.exec, access, context, clock)
    return Fixed()
