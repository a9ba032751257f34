"""Label selectors: requirements on a set of labels, compiled once, matched often.

A Selector comes from a text (`app=web,tier in (a,b),!old`; the grammar is in `selector_text`) or from a LabelSelector
object. `str()` is the canonical text: sorted by key, values sorted. `node_selectors` and `field_selectors` hold the two
other kinds.

Source of truth: k8s.io/apimachinery 0.36 pkg/labels.
"""

from __future__ import annotations

import enum
import json
import re
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.label_rules import label_key_problems, label_value_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bayplan.model.meta import LabelSelector

    Check = Callable[[Mapping[str, str]], bool]


class SelectorError(PermanentError, ValueError):
    """The selector cannot be understood. The message is the API server's; `problems` are its parts."""

    code = "BP-M002"

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__(self.problems[0] if len(self.problems) == 1 else f"[{', '.join(self.problems)}]")


class Operator(enum.StrEnum):
    """How a label is related to the values."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_INTEGER = re.compile("[+-]?[0-9]+")
_SYMBOLS = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}
_ONE = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS})
_COUNT_RULES: dict[Operator, tuple[Callable[[int], bool], str]] = {
    **dict.fromkeys(
        (Operator.IN, Operator.NOT_IN),
        (lambda count: count > 0, "for 'in', 'notin' operators, values set can't be empty"),
    ),
    **dict.fromkeys(
        (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS),
        (lambda count: count == 1, "exact-match compatibility requires one single value"),
    ),
    **dict.fromkeys(
        (Operator.EXISTS, Operator.DOES_NOT_EXIST),
        (lambda count: count == 0, "values set must be empty for exists and does not exist"),
    ),
    **dict.fromkeys(
        (Operator.GREATER_THAN, Operator.LESS_THAN),
        (lambda count: count == 1, "for 'Gt', 'Lt' operators, exactly one value is required"),
    ),
}


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case operator:
                return f"{self.key}{_SYMBOLS.get(operator, operator)}{','.join(sorted(self.values))}"

    def compiled(self) -> Check:
        """A function that tells whether labels meet this requirement."""
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
                return lambda labels: labels.get(key) in values
            case Operator.NOT_IN | Operator.NOT_EQUALS:
                return lambda labels: labels.get(key) not in values
            case Operator.EXISTS:
                return lambda labels: key in labels
            case Operator.DOES_NOT_EXIST:
                return lambda labels: key not in labels
            case operator:
                return _comparison(key, operator, self.values)


def requirement(key: str, operator: Operator, values: Sequence[str] | None, path: str = "") -> Requirement:
    """A checked requirement. Raises SelectorError; `path` says in its message where the requirement stands."""
    at = f"{path}." if path else ""
    problems = (
        [f"{at}key: Invalid value: {quoted(key)}: {'; '.join(found)}"] if (found := label_key_problems(key)) else []
    )
    given = values or ()
    fits, words = _COUNT_RULES[operator]
    if not fits(len(given)):
        problems.append(f"{at}values: Invalid value: {quoted(values)}: {words}")
    if operator in _SYMBOLS:
        problems += [
            f"{at}values[{i}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(given)
            if int64(value) is None
        ]
    problems += [
        f"{at}values[{i}][{key}]: Invalid value: {quoted(value)}: {'; '.join(found)}"
        for i, value in enumerate(given)
        if (found := label_value_problems(value))
    ]
    if problems:
        raise SelectorError(*problems)
    return Requirement(key, operator, tuple(given))


class Selector:
    """Requirements that must all hold. Without any it matches everything; `NOTHING` matches nothing."""

    __slots__ = ("_checks", "_equal", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda one: one.key))
        self._equal = tuple((one.key, one.values[0]) for one in self.requirements if one.operator in _ONE)
        self._checks = tuple(one.compiled() for one in self.requirements if one.operator not in _ONE)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet every requirement."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for check in self._checks:  # noqa: SIM110 - a generator costs more than the checks
            if not check(labels):
                return False
        return True

    def exact(self, key: str) -> str | None:
        """The one value that the label must have for a match; None if there is no such value."""
        for one in self.requirements:
            if one.key == key:
                return one.values[0] if one.operator in _ONE | {Operator.IN} and len(one.values) == 1 else None
        return None

    def __bool__(self) -> bool:
        """Whether it restricts anything."""
        return bool(self.requirements)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class _Nothing(Selector):
    __slots__ = ()

    def matches(self, labels: Mapping[str, str]) -> bool:  # noqa: ARG002 - the signature of Selector
        return False

    def __bool__(self) -> bool:
        return True


EVERYTHING = Selector()
NOTHING: Selector = _Nothing()
_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_labels(labels: Mapping[str, str]) -> Selector:
    """What has all these labels. They are not checked."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """What a LabelSelector object selects: all if it is empty, nothing if there is none. Raises SelectorError."""
    if selector is None:
        return NOTHING
    found = [requirement(key, Operator.EQUALS, [value]) for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        operator = _OBJECT_OPERATORS.get(one.operator)
        if operator is None:
            raise SelectorError(f"{quoted(one.operator)} is not a valid label selector operator")
        found.append(requirement(one.key, operator, one.values or None))
    return Selector(found)


def int64(text: str) -> int | None:
    """The number that Go's ParseInt(text, 10, 64) reads; None where it fails."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def quoted(value: str | Sequence[str] | None) -> str:
    """A value as field errors show it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _comparison(key: str, operator: Operator, values: tuple[str, ...]) -> Check:
    bound = int64(values[0])
    assert bound is not None  # requirement() has seen to it
    greater = operator is Operator.GREATER_THAN

    def check(labels: Mapping[str, str]) -> bool:
        number = int64(labels.get(key, ""))
        return number is not None and (number > bound if greater else number < bound)

    return check
