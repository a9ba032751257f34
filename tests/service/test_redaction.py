"""Secrets never reach a log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.service.redaction import HIDDEN, is_secret_name, redact, scrub

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


class Login(msgspec.Struct):
    user: str
    password: str


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "dbPassword",
        "db_password",
        "passwd",
        "token",
        "access_token",
        "bearerToken",
        "Authorization",
        "secret",
        "client_secret",
        "clientSecret",
        "api_key",
        "x-api-key",
        "apiKey",
        "private_key",
        "credentials",
        "Set-Cookie",
        "client-key-data",
        "APIKey",
        "tokenValue",
        "myAccessKey",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
    assert redact({"a": [{name: "hunter2"}]}) == {"a": [{name: HIDDEN}]}


@pytest.mark.parametrize(
    "name", ["pod", "key", "compass", "passes", "node", "secretary", "bypassed", "monkey", "secretName", "hotKey"]
)
def test_names_of_other_things(name: str) -> None:
    assert redact("hunter2", name) == "hunter2"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("postgresql://ann:hunter2@db:5432/x?a=b", f"postgresql://ann:{HIDDEN}@db:5432/x?a=b"),
        ("postgresql://ann:hun@ter2@db/x", f"postgresql://ann:{HIDDEN}@db/x"),
        ("redis://:hunter2@cache", f"redis://:{HIDDEN}@cache"),
        ("https://db:5432/x@y", "https://db:5432/x@y"),
        ("postgresql://ann:hun/ter2@db/x", f"postgresql://ann:{HIDDEN}@db/x"),
        ('{"url":"http://db:80","who":"ann@x"}', '{"url":"http://db:80","who":"ann@x"}'),
        ("Authorization: Bearer abc.def-123", f"Authorization: Bearer {HIDDEN}"),
        ("sent bearer abcdef123 to it", f"sent bearer {HIDDEN} to it"),
        (f"got {JWT} back", f"got {HIDDEN} back"),
        ("GET /x?token=hunter2&a=b", f"GET /x?token={HIDDEN}&a=b"),
        ("run --password hunter2 --verbose", f"run --password {HIDDEN} --verbose"),
        ("run --api-key=hunter2", f"run --api-key={HIDDEN}"),
        ('{"password": "hun ter2", "a": 1}', f'{{"password": {HIDDEN}, "a": 1}}'),
        ('"{\\"password\\": \\"hun ter2\\"}"', f'"{{\\"password\\": {HIDDEN}}}"'),
        ("Login(user='ann', password='hunter2')", f"Login(user='ann', password={HIDDEN})"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIhunter2\n-----END RSA PRIVATE KEY-----",
            f"-----BEGIN RSA PRIVATE KEY-----{HIDDEN}",
        ),
        ("compass: north", "compass: north"),
        ("pod a/b bound to node c: 3 of 4 tokens", "pod a/b bound to node c: 3 of 4 tokens"),
    ],
)
def test_secrets_are_told_by_their_shape(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed
    assert scrub(scrubbed) == scrubbed


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param({"kind": "Secret", "data": {"x": "aHVudGVy"}}, {"kind": "Secret", "data": HIDDEN}, id="a Secret"),
        pytest.param(
            [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "/"}],
            [{"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "HOME", "value": "/"}],
            id="a container's environment",
        ),
        pytest.param(Login("ann", "hunter2"), {"user": "ann", "password": HIDDEN}, id="a struct"),
        pytest.param(b"token=hunter2", f"token={HIDDEN}", id="bytes"),
        pytest.param(ValueError("password=hunter2"), f"password={HIDDEN}", id="any other object"),
        pytest.param((1, 2.5, None, True, {3}), [1, 2.5, None, True, [3]], id="plain values stay"),
        pytest.param({"token": None, "secret": True}, {"token": None, "secret": True}, id="absence is no secret"),
    ],
)
def test_values_become_plain_and_harmless(value: Any, plain: Any) -> None:
    assert redact(value) == plain


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
)


@given(_JSON)
def test_whatever_is_redacted_can_be_written(value: Any) -> None:
    msgspec.json.encode(redact(value))
