"""TLS: whom we trust, and the certificate by which we say who we are.

A context is built by hand from the one authority that the kubeconfig names; `ssl.create_default_context` would, from
Python 3.13 on, refuse authorities that lack extensions which Kubernetes never asked for.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bayplan.cluster.live.config import Access, ConfigError
from bayplan.model.clock import SECOND, Instant


def tls_context(access: Access) -> ssl.SSLContext:
    """The context for an access. Raises ConfigError for certificates and keys that cannot be read."""
    cluster, user = access.cluster, access.user
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.certificate_authority_data or cluster.certificate_authority:
        try:
            context.load_verify_locations(cadata=_authority(access).decode("ascii"))
        except (OSError, ValueError) as error:
            raise _unreadable(access, "certificate-authority", cluster.certificate_authority, error) from error
    else:
        context.load_default_certs()
    if user.client_certificate_data or user.client_certificate:
        try:
            certificate, key = client_certificate(access)
            load_certificate(context, certificate, key)
        except (OSError, ValueError) as error:
            raise _unreadable(access, "client-certificate or client-key", user.client_certificate, error) from error
    return context


def _authority(access: Access) -> bytes:
    cluster = access.cluster
    return base64.b64decode(cluster.certificate_authority_data) or Path(cluster.certificate_authority).read_bytes()


def client_certificate(access: Access) -> tuple[bytes, bytes]:
    """The user's certificate and key as PEM."""
    user = access.user
    certificate = base64.b64decode(user.client_certificate_data) or Path(user.client_certificate).read_bytes()
    key = base64.b64decode(user.client_key_data) or (Path(user.client_key).read_bytes() if user.client_key else b"")
    return certificate, key


def load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show this certificate on new connections. OpenSSL takes files only; they are gone when this returns."""
    with _private_file(certificate + b"\n" + key) as path:
        context.load_cert_chain(path, password="")  # an encrypted key is refused, not asked for on the terminal


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="bayplan-") as file:  # readable by its owner alone
        file.write(content)
        file.flush()
        yield file.name


def _unreadable(access: Access, what: str, path: str, error: Exception) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConfigError(
        f'{access.origin}: context "{access.context}": {what} cannot be used ({path + ": " if path else ""}{reason})',
        hint="check that the file is there, is PEM, and that certificate and key belong together",
    )


def expiry(access: Access, now: Instant) -> str:
    """When the user's certificate expired, or "" when it did not or there is none."""
    if not (access.user.client_certificate_data or access.user.client_certificate):
        return ""
    from cryptography import x509  # only a refusal needs it

    end = x509.load_pem_x509_certificate(client_certificate(access)[0]).not_valid_after_utc
    return f"{end:%Y-%m-%d %H:%M} UTC" if end < datetime.fromtimestamp(now / SECOND, UTC) else ""
