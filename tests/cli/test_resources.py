"""How the words of a command line become kinds and names, and how values are sorted."""

from __future__ import annotations

import random

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cli.discovery import _Resource as Resource
from bayplan.cli.discovery import _Resources as Resources
from bayplan.cli.discovery import chosen
from bayplan.cli.resources import Wanted, read_words
from bayplan.cli.sorting import read_path, sort_key, value_at


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(["pods"], [Wanted("pods")], id="a type"),
        pytest.param(["po", "a", "b"], [Wanted("po", ("a", "b"))], id="a type and names"),
        pytest.param(["po,deploy", "a"], [Wanted("po", ("a",)), Wanted("deploy", ("a",))], id="types and a name"),
        pytest.param(["po/a", "po/b"], [Wanted("po", ("a",)), Wanted("po", ("b",))], id="types with names"),
    ],
)
def test_words_name_objects(words: list[str], wanted: list[Wanted]) -> None:
    assert read_words(words) == wanted


def test_the_word_all_stands_for_the_workloads_in_the_order_of_kubectl() -> None:
    assert [each.word for each in read_words(["all"])][:3] == ["pods", "replicationcontrollers", "services"]


@pytest.mark.parametrize("words", [[], ["po/"], ["/a"], ["po/a/b"], ["po", "svc/a"], ["svc/a", "po"]])
def test_words_that_name_nothing_are_a_usage_error(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        read_words(words)


_SAID = [
    Resources("v1", (Resource("pods", "Pod", True, "pod", ("po",)), Resource("pods/log", "Pod", True))),
    Resources("example.com/v2", (Resource("ports", "Port", False, "port", ("po", "pt")),)),
]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        pytest.param("ports", "Port.example.com", id="a plural"),
        pytest.param("Port", "Port.example.com", id="a kind"),
        pytest.param("port.example.com", "Port.example.com", id="a name with its group"),
        pytest.param("po", "Pod", id="a short name goes to the first who has it"),
        pytest.param("pods/log", None, id="a subresource is no type"),
        pytest.param("nope", None, id="nothing"),
    ],
)
def test_a_word_means_what_the_server_says(word: str, found: str | None) -> None:
    kind = chosen(word, _SAID)
    assert (kind.qualified if kind else None) == found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(".a.b", 1, id="fields"),
        pytest.param("a.b", 1, id="without the leading dot"),
        pytest.param("{.a.b}", 1, id="in braces"),
        pytest.param(".c[1].d", 2, id="an index"),
        pytest.param(".c[-1].d", 2, id="from the end"),
        pytest.param(r".e.x\.y/z", 3, id="an escaped dot"),
        pytest.param(".e['x.y/z']", 3, id="a quoted field"),
        pytest.param(".a.nope.more", None, id="a field that is not there"),
        pytest.param(".c[7]", None, id="an index that is not there"),
    ],
)
def test_a_path_leads_into_a_document(path: str, value: object) -> None:
    document = {"a": {"b": 1}, "c": [{}, {"d": 2}], "e": {"x.y/z": 3}}
    assert value_at(document, read_path(path)) == value


def test_values_sort_as_what_they_are() -> None:
    wanted = [None, "100m", 1, "2", 2.5, "1Gi", "pod-2", "pod-10", "z"]
    mixed = wanted[:]
    random.Random(3).shuffle(mixed)
    assert sorted(mixed, key=sort_key) == wanted


@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()))
def test_any_values_can_be_sorted(values: list[object]) -> None:
    assert len(sorted(values, key=sort_key)) == len(values)
