"""Columns, documents and ages, as kubectl has them."""

from __future__ import annotations

import io
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cli.printers import Column, Listing, Row, age, coloured, columns, human_duration, render

LISTING = Listing(
    columns=(Column("name"), Column("ready"), Column("status"), Column("node", wide=True)),
    rows=(
        Row(("trainer-3", "1/1", "Running", "gpu-0"), "pod/trainer-3", {"kind": "Pod", "n": "trainer-3"}),
        Row(("web", "0/1", "Pending", None), "pod/web", {"kind": "Pod", "n": "web"}),
    ),
)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param(
            None,
            "NAME        READY   STATUS\ntrainer-3   1/1     Running\nweb         0/1     Pending\n",
            id="columns three spaces apart",
        ),
        pytest.param(
            "wide",
            "NAME        READY   STATUS    NODE\ntrainer-3   1/1     Running   gpu-0\nweb         0/1     Pending   \n",
            id="wide shows every column",
        ),
        pytest.param("name", "pod/trainer-3\npod/web\n", id="names alone"),
        pytest.param(
            "csv", "NAME,READY,STATUS,NODE\ntrainer-3,1/1,Running,gpu-0\nweb,0/1,Pending,\n", id="csv has every column"
        ),
    ],
)
def test_a_listing_in_each_form(output: str | None, text: str) -> None:
    assert render(LISTING, output) == text


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_for_programs_a_listing_is_a_list(output: str) -> None:
    read = json.loads if output == "json" else yaml.safe_load
    items = [row.item for row in LISTING.rows]
    assert read(render(LISTING, output)) == {"apiVersion": "v1", "kind": "List", "items": items}


def test_headers_may_be_left_out() -> None:
    assert render(LISTING, headers=False) == "trainer-3   1/1   Running\nweb         0/1   Pending\n"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        pytest.param([], "", id="nothing is nothing"),
        pytest.param([["A", "B"], ["x", "y"]], "A     B\nx     y\n", id="a column is at least six wide"),
        pytest.param([["one\ntwo", "\x1b[2J"]], "one...   ^[[2J\n", id="a cell stays on its line and obeys no escape"),
        pytest.param([["a,b", 'c"d']], 'a,b   c"d\n', id="plain columns quote nothing"),
    ],
)
def test_columns(lines: list[list[str]], text: str) -> None:
    assert columns(lines) == text


S, M, H, D = 1, 60, 3600, 86400
Y = 365 * D


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-1, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (95 * S, "95s"),
        (119.9, "119s"),
        (2 * M, "2m"),
        (5 * M + 3, "5m3s"),
        (10 * M - 1, "9m59s"),
        (10 * M + 59, "10m"),
        (3 * H - 1, "179m"),
        (3 * H, "3h"),
        (5 * H + 12 * M, "5h12m"),
        (8 * H, "8h"),
        (48 * H - 1, "47h"),
        (48 * H, "2d"),
        (2 * D + 5 * H, "2d5h"),
        (8 * D - 1, "7d23h"),
        (8 * D + 5 * H, "8d"),
        (400 * D, "400d"),
        (2 * Y, "2y"),
        (2 * Y + 80 * D, "2y80d"),
        (8 * Y - 1, "7y364d"),
        (10 * Y + 40 * D, "10y"),
    ],
)
def test_a_span_as_kubectl_shows_it(seconds: float, text: str) -> None:
    assert human_duration(int(seconds * 1_000_000)) == text


@given(st.integers(min_value=0, max_value=10**16))
def test_no_age_is_longer_than_six_characters_in_eight_years(span: int) -> None:
    assert len(human_duration(span)) <= 6


def test_the_age_of_what_has_no_birthday() -> None:
    assert age(None, 5) == "<unknown>"
    assert age(1_000_000, 96_000_000) == "95s"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert (coloured(Terminal()), coloured(io.StringIO())) == (True, False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())
    monkeypatch.setenv("NO_COLOR", "")  # no-color.org: set and not empty
    assert coloured(Terminal())
