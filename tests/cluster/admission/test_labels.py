"""Label selectors: their form, and what they pick."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import has_invalid_values, read_selector, validate_label_selector


def expression(key: str, operator: str, *values: str) -> Doc:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "faults"),
    [
        pytest.param(None, [], id="no selector has no faults"),
        pytest.param(expression("a", "In", "b"), [], id="In with a value is good"),
        pytest.param(
            expression("a", "NotIn"),
            [("s.matchExpressions[0].values", "Required value: must be specified when `operator` is 'In' or 'NotIn'")],
            id="NotIn needs values",
        ),
        pytest.param(
            expression("a", "Exists", "b"),
            [
                (
                    "s.matchExpressions[0].values",
                    "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
            ],
            id="Exists takes no values",
        ),
        pytest.param(
            expression("a", "Gt", "1"),
            [("s.matchExpressions[0].operator", 'Invalid value: "Gt": not a valid selector operator')],
            id="an operator of node affinity is none here",
        ),
    ],
)
def test_the_form_of_a_selector(selector: Doc | None, faults: list[tuple[str, str]]) -> None:
    errors = Errors()
    validate_label_selector(selector, "s", errors)
    assert [(cause.field, cause.message) for cause in errors] == faults


def test_a_stored_selector_with_bad_values_may_stay() -> None:
    selector, errors = expression("a", "In", "x y"), Errors()
    assert has_invalid_values(selector)
    validate_label_selector(selector, "s", errors, invalid_values=True)
    assert not errors


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        pytest.param(None, False, id="no selector picks nothing"),
        pytest.param({}, True, id="an empty selector picks everything"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="equal labels are picked"),
        pytest.param({"matchLabels": {"app": "web", "tier": "x"}}, False, id="every label has to be equal"),
        pytest.param(expression("app", "In", "web", "api"), True, id="In picks one of its values"),
        pytest.param(expression("tier", "NotIn", "x"), True, id="NotIn picks what lacks the label"),
        pytest.param(expression("app", "NotIn", "web"), False, id="NotIn leaves its values out"),
        pytest.param(expression("app", "Exists"), True, id="Exists picks any value"),
        pytest.param(expression("app", "DoesNotExist"), False, id="DoesNotExist picks none"),
    ],
)
def test_what_a_selector_picks(selector: Doc | None, picked: bool) -> None:
    readable = read_selector(selector)
    assert readable is not None
    assert readable.matches({"app": "web"}) is picked


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"a b": ""}}, id="a bad key"),
        pytest.param(expression("a", "In"), id="In without values"),
        pytest.param(expression("a", "In", "x y"), id="a bad value"),
        pytest.param(expression("a", "Gt", "1"), id="an unknown operator"),
    ],
)
def test_what_is_refused_cannot_be_read_either(selector: Doc) -> None:
    errors = Errors()
    validate_label_selector(selector, "s", errors)
    assert errors
    assert read_selector(selector) is None
