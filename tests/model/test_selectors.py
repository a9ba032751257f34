"""Selectors are read, matched, written and refused as upstream does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from bayplan.model.field_selectors import FieldSelector, FieldTerm, parse_field_selector
from bayplan.model.label_rules import label_key_problems, label_value_problems, subdomain_problems
from bayplan.model.meta import LabelSelector
from bayplan.model.node_selectors import NodeMatcher, node_matcher, node_terms, preferred_terms
from bayplan.model.objects import from_builtins
from bayplan.model.pods import PodSpec
from bayplan.model.selector_text import parse_selector
from bayplan.model.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Selector,
    SelectorError,
    from_label_selector,
    from_labels,
    requirement,
)
from tests.model.recorded import recorded

keys = st.sampled_from(["a", "b", "tier", "example.com/x", "in", "notin"])
values = st.sampled_from(["", "x", "y", "1", "in"])
value_lists = st.lists(values, min_size=1, max_size=3, unique=True).map(sorted)
requirements = st.one_of(
    st.builds(requirement, keys, st.sampled_from([Operator.IN, Operator.NOT_IN]), value_lists),
    st.builds(
        requirement,
        keys,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        values.map(lambda value: [value]),
    ),
    st.builds(
        requirement,
        keys,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(0, 99).map(lambda number: [str(number)]),
    ),
    st.builds(requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]), st.just([])),
)
selectors = st.builds(Selector, st.lists(requirements, max_size=4))


def _read(case: dict[str, Any]) -> Selector | FieldSelector:
    match case["family"]:
        case "label":
            return parse_selector(case["text"])
        case "field":
            return parse_field_selector(case["text"])
        case _:
            given_object = case["selector"]
            return from_label_selector(None if given_object is None else from_builtins(given_object, LabelSelector))


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    try:
        selector = _read(case)
    except SelectorError as error:
        return {"error": error.message}
    return {"string": str(selector), "matches": [selector.matches(labels) for labels in case["sets"]]}


def _node_outcome(matcher: NodeMatcher, labels: dict[str, str]) -> bool | str:
    try:
        return matcher.matches(labels, "n1")
    except SelectorError as error:
        return error.message


@pytest.mark.parametrize("family", ["label", "labelSelector", "field"])
def test_every_recorded_selector_is_read_as_upstream_reads_it(family: str) -> None:
    cases = [case for case in recorded("selectors") if case["family"] == family]
    assert len(cases) > 100
    for case in cases:
        assert _outcome(case) == case["expected"], case


def test_every_recorded_node_selector_matches_as_upstream_does() -> None:
    for case in recorded("selectors"):
        if case["family"] == "node":
            selector = from_builtins(case["nodeSelector"], NodeSelector)
            matcher = NodeMatcher(terms=node_terms(selector.node_selector_terms))
            assert [_node_outcome(matcher, labels) for labels in case["sets"]] == case["expected"]["matches"]


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("", {}, True, id="no requirement, no restriction"),
        pytest.param("app=web", {"app": "web", "x": "y"}, True, id="equal"),
        pytest.param("app!=web", {}, True, id="a missing label is not equal"),
        pytest.param("app notin (web)", {}, True, id="a missing label is in no set"),
        pytest.param("app in (web,db)", {"app": "db"}, True, id="one of a set"),
        pytest.param("app in (web,)", {"app": ""}, True, id="the empty value is a value"),
        pytest.param("app", {"app": ""}, True, id="a key asks for the label, whatever its value"),
        pytest.param("!app", {"app": ""}, False, id="a negated key asks for its absence"),
        pytest.param("n>5", {"n": "10"}, True, id="numbers compare as numbers"),
        pytest.param("n<5", {"n": "few"}, False, id="what is no number is neither less nor greater"),
        pytest.param("a=1,b=2", {"a": "1"}, False, id="every requirement must hold"),
    ],
)
def test_matching(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_selector(text).matches(labels) is matches


@given(selectors)
def test_the_text_of_a_selector_reads_back_as_the_selector(selector: Selector) -> None:
    assert parse_selector(str(selector)) == selector
    assert str(parse_selector(str(selector))) == str(selector)


@given(selectors, st.dictionaries(keys, values))
def test_a_selector_matches_when_each_requirement_does(selector: Selector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) is all(one.compiled()(labels) for one in selector.requirements)


@given(
    st.lists(
        st.builds(FieldTerm, st.sampled_from(["a", "b.c"]), st.text("ab,=\\", max_size=4), st.booleans()), max_size=3
    )
)
def test_field_values_may_hold_any_character(terms: list[FieldTerm]) -> None:
    read = parse_field_selector(str(FieldSelector(tuple(terms))))
    assert sorted(map(str, read.terms)) == sorted(map(str, terms))


def test_everything_and_nothing() -> None:
    assert EVERYTHING.matches({})
    assert not NOTHING.matches({})
    assert (bool(EVERYTHING), bool(NOTHING)) == (False, True)
    assert EVERYTHING != NOTHING
    assert from_label_selector(None) is NOTHING
    assert from_labels({}) == EVERYTHING
    assert len({from_labels({"a": "1"}), parse_selector("a=1")}) == 1
    assert repr(from_labels({"b": "2", "a": "1"})) == "Selector('a=1,b=2')"


def test_an_index_can_ask_for_the_only_value() -> None:
    selector = parse_selector("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.exact(key) for key in "abcde"] == ["1", "2", None, None, None]
    fields = parse_field_selector("spec.nodeName=n1,status.phase!=Failed")
    assert [fields.exact(one) for one in ("spec.nodeName", "status.phase")] == ["n1", None]


def _term(*values: str, operator: str = "In") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement("zone", operator, values),))


def test_a_pod_runs_where_both_its_node_selector_and_its_affinity_allow() -> None:
    affinity = Affinity(node_affinity=NodeAffinity(required=NodeSelector((_term("a"), _term("b")))))
    matcher = node_matcher(PodSpec(node_selector={"gpu": "yes"}, affinity=affinity))
    assert matcher.matches({"gpu": "yes", "zone": "b"}, "n1")
    assert not matcher.matches({"gpu": "yes", "zone": "c"}, "n1")
    assert not matcher.matches({"zone": "a"}, "n1")
    assert node_matcher(PodSpec()).matches({}, "n1")
    only_empty_terms = NodeAffinity(required=NodeSelector((NodeSelectorTerm(),)))
    assert not node_matcher(PodSpec(affinity=Affinity(node_affinity=only_empty_terms))).matches({}, "n1")


def test_preferences_that_weigh_nothing_are_left_out_and_senseless_ones_refused() -> None:
    wishes = (
        PreferredSchedulingTerm(5, _term("a")),
        PreferredSchedulingTerm(0, _term("b")),
        PreferredSchedulingTerm(3),
    )
    ((weight, term),) = preferred_terms(wishes)
    assert (weight, term.matches({"zone": "a"}, "n1")) == (5, True)
    with pytest.raises(SelectorError, match=r'\[0\].matchExpressions\[0\].operator: Unsupported value: "Near"'):
        preferred_terms((PreferredSchedulingTerm(5, _term("a", operator="Near")),))


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        pytest.param("app", 0, id="a plain name"),
        pytest.param("example.com/App_1.x", 0, id="a name with a prefix"),
        pytest.param("", 2, id="nothing"),
        pytest.param("/app", 1, id="an empty prefix"),
        pytest.param("Example.com/app", 1, id="a prefix in capitals"),
        pytest.param("a/b/c", 1, id="two slashes"),
        pytest.param("a" * 64, 1, id="too long"),
        pytest.param("-a", 1, id="a dash in front"),
    ],
)
def test_label_keys(key: str, problems: int) -> None:
    assert len(label_key_problems(key)) == problems


def test_label_values_and_subdomains() -> None:
    assert (label_value_problems(""), label_value_problems("v1.2_x")) == ((), ())
    assert label_value_problems("é" * 32)[0] == "must be no more than 63 bytes"
    assert subdomain_problems("a." * 127)[0] == "must be no more than 253 bytes"
