"""Columns and documents, as kubectl has them."""

from __future__ import annotations

import io
import json

import pytest
import yaml

from bayplan.cli.printers import Column, Listing, Row, coloured, columns, render

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
