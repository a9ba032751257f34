"""Certificates, tokens and kubeconfigs of a cluster on this machine: made for one run of it."""

from __future__ import annotations

import base64
import ipaddress
import secrets
from datetime import datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=365)


class Authority:
    """A certificate authority of one's own, and what it signs."""

    def __init__(self, name: str, now: datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = (
            self._builder(name, self._key.public_key())
            .issuer_name(_name(name))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(self, name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(minutes=5))
            .not_valid_after(self._now + _LIFE)
        )

    @property
    def pem(self) -> bytes:
        """The authority's certificate, for those who are to trust it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def serving(self, name: str) -> tuple[bytes, bytes]:
        """A certificate and key for a server on loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                x509.IPAddress(ipaddress.ip_address("::1")),
            ]
        )
        certificate = (
            self._builder(name, key.public_key())
            .issuer_name(self.certificate.subject)
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)


def signing_key() -> bytes:
    """A key for service account tokens."""
    return _key_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def token() -> str:
    """A bearer token nobody guesses."""
    return secrets.token_urlsafe(32)


def write_private(path: Path, content: bytes | str) -> Path:
    """Write a file that only its owner may read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def kubeconfig(name: str, server: str, authority: bytes, bearer: str) -> str:
    """A kubeconfig with one cluster, one user, one context, all of the same name."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()},
            }
        ],
        "users": [{"name": name, "user": {"token": bearer}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text
