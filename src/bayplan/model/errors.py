"""What can go wrong, split by the one question a caller has: is it worth trying again?

    BayplanError
    ├── TemporaryError            try again: later, or after reading anew
    │   ├── Conflict              409  the object changed since it was read, or the change clashes with its state
    │   ├── Expired               410  the revision is gone from history: list again
    │   ├── TooManyRequests       429  a budget forbids it now
    │   └── ServerError           500  the server failed; nothing is known of the outcome
    └── PermanentError            the same call will fail again
        ├── BadRequest            400  the request cannot be read
        ├── Unauthorized          401  the server does not know who asks
        ├── Forbidden             403  quota, policy or rights
        ├── NotFound              404
        ├── MethodNotAllowed      405  the verb does not go with the resource
        ├── AlreadyExists         409
        ├── UnsupportedMediaType  415
        └── Invalid               422  the object breaks rules; one Cause per field

Every error has a stable `code` (docs/errors.md lists them), says what happened and to which object, and, where there is
something the user can do, carries it as `hint`. The API errors below have the shape of a Kubernetes Status.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class BayplanError(Exception):
    """The root of every error that bayplan raises on purpose."""

    code: ClassVar[str] = "BP-0000"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class TemporaryError(BayplanError):
    """Trying again may succeed."""

    code = "BP-0001"


class PermanentError(BayplanError):
    """Trying the same again will fail again."""

    code = "BP-0002"


class Cause(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One broken rule: the path of the field, why, and the API server's words for it."""

    field: str = ""
    reason: str = ""
    message: str = ""


class Details(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which object a Status speaks of."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retryAfterSeconds: int = 0  # noqa: N815 - the wire's own name


class ApiError(BayplanError):
    """A refusal in the shape of a Kubernetes Status: HTTP status, reason, message, causes."""

    status: ClassVar[int] = 500
    reason: ClassVar[str | None] = None

    def __init__(self, message: str, *, details: Details | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.details = details if details is not None else Details()

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The broken rules, in the order in which they were found."""
        return self.details.causes

    def to_status(self) -> dict[str, Any]:
        """The v1 Status object that an API server answers with."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason is not None:
            body["reason"] = self.reason
        details = msgspec.json.decode(msgspec.json.encode(self.details))  # lists, as on the wire, not tuples
        if details:
            body["details"] = details
        body["code"] = self.status
        return body


class BadRequest(ApiError, PermanentError):
    """The request cannot be read: bad JSON, a wrong type, an unknown field under strict validation."""

    code = "BP-C400"
    status = 400
    reason = "BadRequest"


class Unauthorized(ApiError, PermanentError):
    """The server does not know who asks: a wrong or expired token or client certificate."""

    code = "BP-C401"
    status = 401
    reason = "Unauthorized"


class Forbidden(ApiError, PermanentError):
    """Understood and refused: a quota, a policy, a terminating namespace."""

    code = "BP-C403"
    status = 403
    reason = "Forbidden"


class NotFound(ApiError, PermanentError):
    """There is no such object, kind or namespace."""

    code = "BP-C404"
    status = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError, PermanentError):
    """The verb does not go with the resource."""

    code = "BP-C405"
    status = 405
    reason = "MethodNotAllowed"


class AlreadyExists(ApiError, PermanentError):
    """An object of that kind and name is there already."""

    code = "BP-C409"
    status = 409
    reason = "AlreadyExists"


class Conflict(ApiError, TemporaryError):
    """The object changed since it was read, a precondition does not hold, or another manager owns the field."""

    code = "BP-C410"
    status = 409
    reason = "Conflict"


class Expired(ApiError, TemporaryError):
    """The asked revision is no longer in history: list again and watch from there."""

    code = "BP-C411"
    status = 410
    reason = "Expired"


class UnsupportedMediaType(ApiError, PermanentError):
    """The body's content type is not one the server reads."""

    code = "BP-C415"
    status = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError, PermanentError):
    """The object breaks rules; each is a Cause with the field's path."""

    code = "BP-C422"
    status = 422
    reason = "Invalid"


class TooManyRequests(ApiError, TemporaryError):
    """A disruption budget, or the server's own load, forbids it now."""

    code = "BP-C429"
    status = 429
    reason = "TooManyRequests"


class ServerError(ApiError, TemporaryError):
    """The server failed. `reason` is None where upstream returns a bare error (always status 500)."""

    code = "BP-C500"
    status = 500
