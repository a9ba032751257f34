"""Which nodes a pod may run on: `nodeSelector` and the terms of node affinity, compiled.

Terms are alternatives; within a term everything must hold; an empty term matches no node. A term that makes no sense is
reported only if no other term matches: so upstream keeps old pods schedulable.

Source of truth: k8s.io/component-helpers 0.36 scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.field_selectors import FieldSelector, FieldTerm
from bayplan.model.selectors import (
    EVERYTHING,
    Operator,
    Selector,
    SelectorError,
    from_labels,
    quoted,
    requirement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bayplan.model.affinity import NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
    from bayplan.model.pods import PodSpec

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}


class NodeTerm(msgspec.Struct, frozen=True):
    """One compiled term; `problems` is what is wrong with it."""

    labels: Selector
    fields: FieldSelector
    problems: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name meets the term."""
        return self.labels.matches(labels) and (not name or self.fields.matches({"metadata.name": name}))


class NodeMatcher(msgspec.Struct, frozen=True):
    """The nodes that a pod may run on. `terms` is None where there is no affinity at all."""

    labels: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node is among them. Raises SelectorError if no term matches and one makes no sense."""
        if not self.labels.matches(labels):
            return False
        if self.terms is None:
            return True
        if any(not term.problems and term.matches(labels, name) for term in self.terms):
            return True
        if problems := [problem for term in self.terms for problem in term.problems]:
            raise SelectorError(*problems)
        return False


def node_matcher(spec: PodSpec) -> NodeMatcher:
    """The nodes that a pod's nodeSelector and required node affinity allow."""
    labels = from_labels(spec.node_selector)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return NodeMatcher(labels)
    return NodeMatcher(labels, node_terms(affinity.required.node_selector_terms))


def node_terms(terms: Iterable[NodeSelectorTerm]) -> tuple[NodeTerm, ...]:
    """The terms compiled, without those that are empty."""
    return tuple(
        _compiled(term, f"nodeSelectorTerms[{i}]")
        for i, term in enumerate(terms)
        if term.match_expressions or term.match_fields
    )


def preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[int, NodeTerm], ...]:
    """Weights and compiled terms, without those that are empty or weigh nothing. Raises SelectorError."""
    found = tuple(
        (term.weight, _compiled(term.preference, f"[{i}]"))
        for i, term in enumerate(terms)
        if term.weight and (term.preference.match_expressions or term.preference.match_fields)
    )
    if problems := [problem for _, term in found for problem in term.problems]:
        raise SelectorError(*problems)
    return found


def _compiled(term: NodeSelectorTerm, path: str) -> NodeTerm:
    problems: list[str] = []
    requirements = []
    for i, one in enumerate(term.match_expressions):
        at = f"{path}.matchExpressions[{i}]"
        operator = _OPERATORS.get(one.operator)
        if operator is None:
            problems.append(_unsupported(at, one.operator, tuple(_OPERATORS)))
            continue
        try:
            requirements.append(requirement(one.key, operator, one.values or None, at))
        except SelectorError as error:
            problems += error.problems
    fields, more = _fields(term.match_fields, f"{path}.matchFields")
    return NodeTerm(Selector(requirements), fields, (*problems, *more))


def _fields(wanted: Iterable[NodeSelectorRequirement], path: str) -> tuple[FieldSelector, list[str]]:
    terms = []
    problems = []
    for i, one in enumerate(wanted):
        if one.operator not in ("In", "NotIn"):
            problems.append(_unsupported(f"{path}[{i}]", one.operator, ("In", "NotIn")))
        elif len(one.values) != 1:
            problems.append(f"{path}[{i}].values: Invalid value: {quoted(one.values or None)}: must have one element")
        else:
            terms.append(FieldTerm(one.key, one.values[0], one.operator == "NotIn"))
    return FieldSelector(tuple(terms)), problems


def _unsupported(path: str, operator: str, supported: tuple[str, ...]) -> str:
    values = ", ".join(map(quoted, supported))
    return f"{path}.operator: Unsupported value: {quoted(operator)}: supported values: {values}"
