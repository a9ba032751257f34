"""Errors tell whether to try again, carry stable codes and become Kubernetes Status objects."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import bayplan.model
from bayplan.model import errors
from bayplan.model.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    BayplanError,
    Cause,
    Conflict,
    Details,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    PermanentError,
    ServerError,
    TemporaryError,
    TooManyRequests,
    UnsupportedMediaType,
)


def _all(root: type[BayplanError]) -> set[type[BayplanError]]:
    return {root}.union(*(_all(one) for one in root.__subclasses__()))


@pytest.mark.parametrize(
    ("kind", "status", "reason", "again"),
    [
        pytest.param(BadRequest, 400, "BadRequest", False, id="what cannot be read stays unreadable"),
        pytest.param(Forbidden, 403, "Forbidden", False, id="what is forbidden stays forbidden"),
        pytest.param(NotFound, 404, "NotFound", False, id="what is not there is not there"),
        pytest.param(AlreadyExists, 409, "AlreadyExists", False, id="a name is taken"),
        pytest.param(Conflict, 409, "Conflict", True, id="a conflict is over after reading anew"),
        pytest.param(Expired, 410, "Expired", True, id="an expired revision is listed again"),
        pytest.param(UnsupportedMediaType, 415, "UnsupportedMediaType", False, id="a media type stays unsupported"),
        pytest.param(Invalid, 422, "Invalid", False, id="an invalid object stays invalid"),
        pytest.param(TooManyRequests, 429, "TooManyRequests", True, id="a budget recovers"),
        pytest.param(ServerError, 500, None, True, id="a server recovers"),
    ],
)
def test_an_api_error(kind: type[ApiError], status: int, reason: str | None, again: bool) -> None:
    error = kind("no")
    assert isinstance(error, TemporaryError) is again
    assert isinstance(error, PermanentError) is not again
    assert error.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "no",
        **({"reason": reason} if reason else {}),
        "code": status,
    }


def test_a_status_names_the_object_and_every_cause() -> None:
    causes = (Cause("spec.replicas", "FieldValueInvalid", "must be positive"),)
    error = Invalid("bad", details=Details(name="web", group="apps", kind="Deployment", causes=causes))
    assert error.causes == causes
    assert error.to_status()["details"] == {
        "name": "web",
        "group": "apps",
        "kind": "Deployment",
        "causes": [{"field": "spec.replicas", "reason": "FieldValueInvalid", "message": "must be positive"}],
    }


def test_the_hint_is_shown_below_the_message() -> None:
    assert str(PermanentError("no room", hint="free some")) == "no room\n  hint: free some"
    assert str(PermanentError("no room")) == "no room"


def test_no_two_errors_share_a_code() -> None:
    for module in pkgutil.iter_modules(bayplan.model.__path__):
        importlib.import_module(f"bayplan.model.{module.name}")
    kinds = [
        kind for kind in _all(BayplanError) if kind.__module__.startswith("bayplan.model.") and kind is not ApiError
    ]
    assert len({kind.code for kind in kinds}) == len(kinds) > len(vars(errors)) // 3
