"""What an API server, or the way to it, answers with when it does not answer: turned into bayplan's errors.

A Status is read by its reason and its code; a broken connection by what broke it. Each error says in one line what
happened and, as its hint, what to do.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

import httpx2
import msgspec

from bayplan.cluster.salvage import UNREADABLE
from bayplan.model.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    BayplanError,
    Conflict,
    Details,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PermanentError,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)


class Unreachable(ServerError):
    """The server could not be reached, or the connection broke; nothing is known of the outcome."""

    code = "BP-K002"


class Untrusted(PermanentError):
    """The server's certificate is not one to trust: expired, of an unknown authority, for another name."""

    code = "BP-K003"


_CLASSES: tuple[type[ApiError], ...] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    AlreadyExists,
    Expired,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
)
_BY_REASON = {(one.status, one.reason): one for one in _CLASSES}
_BY_STATUS = {one.status: one for one in reversed(_CLASSES)}  # the first of a status stands for reasons we do not know
_CANNOT = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)"'
    r'(?: in API group "[^"]*")?(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_SHOWN = 200


class _Status(msgspec.Struct, frozen=True):
    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


_READ_STATUS = msgspec.json.Decoder(_Status)


def error_of(code: int, body: bytes | msgspec.Raw, *, retry_after: str = "") -> ApiError:
    """The error that an answer stands for: a Status, or the text of whatever answered in the server's place."""
    try:
        status = _READ_STATUS.decode(body)
    except UNREADABLE:
        status = _Status()
    if status.kind != "Status":
        text = " ".join(bytes(body).decode(errors="replace").split())[:_SHOWN]
        status = _Status(message=f"the server answered {code}: {text}" if text else f"the server answered {code}")
    code = code or status.code
    details = status.details or Details()
    if retry_after.isdigit() and not details.retryAfterSeconds:
        details = msgspec.structs.replace(details, retryAfterSeconds=int(retry_after))
    return _class_of(code, status.reason)(status.message, details=details, hint=_hint(code, status.message))


def _class_of(code: int, reason: str) -> type[ApiError]:
    if code >= 500 or not code:  # it does not even say what it is
        return ServerError
    return _BY_REASON.get((code, reason)) or _BY_STATUS.get(code, BadRequest)


def _hint(code: int, message: str) -> str:
    match = _CANNOT.search(message) if code == Forbidden.status else None
    if match is None:
        return ""
    where = f"in namespace {match['namespace']}" if match["namespace"] else "in the whole cluster"
    return f"ask for a role that lets {match['user']} {match['verb']} {match['resource']} {where}"


_CERTIFICATE_FAULTS = {
    9: ("is not valid yet", "check this machine's clock"),
    10: ("has expired", "renew the server's certificate, or check this machine's clock"),
    62: ("is for another name", "use the name in the certificate, or set tls-server-name in the kubeconfig"),
    64: ("is for another address", "use the name in the certificate, or set tls-server-name in the kubeconfig"),
}
"""By the verify code of OpenSSL; all others are about who signed it."""
_UNKNOWN_SIGNER = (
    "is signed by an authority that is not trusted",
    "put the cluster's CA into certificate-authority-data of the kubeconfig",
)


def broken(error: httpx2.HTTPError, server: str) -> BayplanError:
    """The error that a failed exchange with `server` stands for."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            what, hint = _CERTIFICATE_FAULTS.get(cause.verify_code, _UNKNOWN_SIGNER)
            return Untrusted(f"{server}: the server's certificate {what}", hint=hint)
    what, hint = _network_fault(error, causes)
    return Unreachable(f"{server}: {what}", hint=hint)


def _network_fault(error: httpx2.HTTPError, causes: list[BaseException]) -> tuple[str, str]:
    check = "check that the server runs and that the kubeconfig names its address"
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"no such host ({cause.strerror})", "check the server's name in the kubeconfig, and the DNS"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused", check
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection ({cause.reason or cause})", "check that the address is an https one"
    if isinstance(error, httpx2.ConnectTimeout):
        return "no answer to the attempt to connect", f"{check}; a firewall or a VPN that is off looks like this too"
    if isinstance(error, httpx2.ProxyError):
        return f"the proxy refused ({error})", "check proxy-url in the kubeconfig"
    if isinstance(error, httpx2.ConnectError):
        return f"cannot connect ({error})", check
    if isinstance(error, httpx2.TimeoutException):
        return "no answer in time", "the server is overloaded or hangs; try again"
    return f"the connection broke ({str(error) or type(error).__name__})", "try again"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it; an attempt at several addresses is a group of them."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
