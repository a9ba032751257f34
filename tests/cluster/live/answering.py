"""A server of a few lines that answers what a test says: for what a real API server cannot be made to do at will."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bayplan.cluster.live.config import Access, ClusterEntry, UserEntry


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: str
    """The common name of the client's certificate."""


class Answer(msgspec.Struct, frozen=True):
    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = {}


Handler = Callable[[Request], Answer]
FINE = Answer()
REFUSED = Answer(b'{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":401}', 401)


class Seen:
    """A handler that remembers what it was asked."""

    def __init__(self, answer: Answer = FINE) -> None:
        self.requests: list[Request] = []
        self._answer = answer

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        return self._answer


@asynccontextmanager
async def answering(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a server that answers with `handler`, one request a connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        answer = handler(Request(method, path, headers, body, _peer(writer)))
        lines = [f"HTTP/1.1 {answer.status} X", f"Content-Length: {len(answer.body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()
        await server.wait_closed()


def _peer(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("peercert") or {}
    names: dict[str, str] = dict(pair for group in certificate.get("subject", ()) for pair in group)
    return names.get("commonName", "")


class Pki:
    """Certificates that sign themselves, valid from and for as long as a test says."""

    def __init__(self, folder: Path, name: str = "server", *, days: int = 3, start: int = -1) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        begins = datetime.now(UTC) + timedelta(days=start)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.certificate_file, self.key_file = folder / f"{name}.crt", folder / f"{name}.key"
        self.certificate_file.write_bytes(self.certificate)
        self.key_file.write_bytes(self.key)

    @property
    def certificate_data(self) -> str:
        return base64.b64encode(self.certificate).decode()

    @property
    def key_data(self) -> str:
        return base64.b64encode(self.key).decode()

    def server(self, *, clients: Pki | None = None) -> ssl.SSLContext:
        """A server that shows this certificate, and with `clients` wants to see theirs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate_file, self.key_file)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.certificate_file)
        return context


def access(url: str, user: UserEntry | None = None, *, authority: Pki | None = None) -> Access:
    """An access to a server."""
    trusted = authority.certificate_data if authority else ""
    cluster = ClusterEntry(server=url, certificate_authority_data=trusted)
    return Access(context="test", cluster=cluster, user=user or UserEntry(), origin="kubeconfig")
