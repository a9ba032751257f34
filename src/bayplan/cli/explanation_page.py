"""An explanation as people read it, and as programs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.describe.page import NONE, moment
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.explanation import Explanation, Standing, Waiting
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.scheduling.whatif.lowering import quantity
from bayplan.scheduling.whatif.pod_changes import LowerRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bayplan.cli.describe.page import Page, Pairs
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.framework import Refusal
    from bayplan.scheduling.whatif import Proposal

Doc = dict[str, Any]

_ELSEWHERE = "node names"
"""What is shown for a refusal of nodes that the pod's affinity does not name: no plugin's own."""


class Shown(msgspec.Struct, frozen=True):
    """How much is to be shown: so many nodes with their scores, every node's refusals, or those of one node."""

    top: int = 10
    nodes: bool = False
    node: str = ""


def explanation_page(found: Explanation, queue: Waiting, shown: Shown, page: Page) -> None:
    """The whole page."""
    queued = [] if found.on else _queued(found, queue, page)
    page.pairs([*_head(found), *queued, *(_placed(found) if found.decision.node else _pending(found))])
    if found.decision.feasible:
        _scores(found, shown, page)
    if found.refusals:
        _turned_away(found, page)
    if shown.nodes or shown.node:
        _refusals(found, shown, page)
    _suggestions(found, page)


def _head(found: Explanation) -> Pairs:
    pod = found.pod
    return [
        ("Name", pod.metadata.name),
        ("Namespace", pod.metadata.namespace),
        ("Scheduler", pod.spec.scheduler_name),
        ("Priority", str(pod.spec.priority)),
        ("Node", found.on or NONE),
    ]


def _queued(found: Explanation, queue: Waiting, page: Page) -> Pairs:
    tries = f", {queue.attempts} attempt{'s' * (queue.attempts != 1)} in its events" if queue.attempts else ""
    return [
        ("Waiting", f"since {moment(queue.since, page.now)}{tries}" if queue.since else None),
        ("Told Before", queue.said if queue.said and queue.said != found.decision.message else None),
    ]


# --- a pod that fits


def _placed(found: Explanation) -> Pairs:
    decision = found.decision
    assert decision.rule is not None  # it has a node
    fits = f"{len(decision.feasible)} of {decision.nodes} nodes fit"
    pairs: list[tuple[str, str | list[str] | None]] = [
        ("Decision", [f"{decision.node}, decided on the cluster as it is now" + _without(found), fits]),
        ("Because", decision.rule.value),
        ("Best Nodes", ", ".join(decision.best) if len(decision.best) > 1 else None),
    ]
    if found.on:
        pairs.append(("Compared", f"the decision now is {found.standing.value}"))
    return pairs


def _without(found: Explanation) -> str:
    return " without this pod" if found.on else ""


def _scores(found: Explanation, shown: Shown, page: Page) -> None:
    decision = found.decision
    ranked = found.ranked
    rows = [node for node in ranked if node == shown.node] if shown.node else ranked[: shown.top]
    if found.on in ranked and found.on not in rows and not shown.node:
        rows.append(found.on)
    if not rows:
        return
    page.table(
        "Scores",
        ["Node", "Total", *found.scorers],
        [[_marked(node, found), str(decision.total(node)), *_points(decision, node, found.scorers)] for node in rows],
    )
    if len(rows) < len(ranked) and not shown.node:
        page.line(f"and {len(ranked) - len(rows)} more: --top {len(ranked)} shows all", 2)


def _marked(node: str, found: Explanation) -> str:
    marks = [word for word, other in (("chosen", found.decision.node), ("here", found.on)) if other == node]
    return f"{node} ({', '.join(marks)})" if marks else node


def _points(decision: Decision, node: str, plugins: Iterable[str]) -> list[str]:
    scores = decision.scores[node]
    return [str(scores[plugin]) if plugin in scores else "-" for plugin in plugins]


# --- a pod that does not


def _pending(found: Explanation) -> Pairs:
    decision = found.decision
    gates = [each.name for each in found.pod.spec.scheduling_gates]
    return [
        ("Scheduling Gates", gates or None),
        ("Message", _message(decision)),
        ("Nominated Node", found.pod.status.nominated_node_name or None),
        ("Preemption", _preemption(decision)),
        ("Compared", f"the decision now is {Standing.NOWHERE.value}" if found.on else None),
    ]


def _message(decision: Decision) -> str:
    return decision.message or (", ".join(decision.whole.reasons) if decision.whole else "")


def _preemption(decision: Decision) -> str | list[str] | None:
    attempt = decision.preemption
    if attempt is None:
        return None
    if not attempt.node:
        return "evicts nobody" if attempt.message else "is not enabled"
    victims = [f"{namespace}/{name}" for namespace, name in attempt.victims.pods]
    broken = attempt.victims.violations
    lines = [f"would evict {', '.join(victims)} from {attempt.node}"]
    if broken:
        lines.append(f"against the disruption budget of {broken} of them")
    if attempt.any_of:
        lines.append(f"or the pods of another of {', '.join(attempt.any_of)}: kube-scheduler takes any of these")
    return lines


def _turned_away(found: Explanation, page: Page) -> None:
    page.table(
        "Turned Away By",
        ["Plugin", "First", "In All", "Reasons"],
        [
            [
                each.name or _ELSEWHERE,
                str(each.first),
                str(each.all),
                ", ".join(f"{reason} ({count})" for reason, count in sorted(each.reasons.items())),
            ]
            for each in found.turned_away
        ],
    )


def _refusals(found: Explanation, shown: Shown, page: Page) -> None:
    rows = [
        [node if number == 0 else "", each.plugin or _ELSEWHERE, each.code, ", ".join(each.reasons)]
        for node, refusals in found.refusals.items()
        if shown.node in ("", node)
        for number, each in enumerate(refusals)
    ]
    if rows or not shown.node:
        page.table("Refusals", ["Node", "Plugin", "Code", "Reasons"], rows)


# --- what would help


def _suggestions(found: Explanation, page: Page) -> None:
    if found.decision.node or found.on:
        return
    answer = found.answer
    if not answer.proposals:
        page.line("Would Fit If:  no change of up to three was found that would do")
    else:
        page.heading("Would Fit If")
    for each in answer.proposals:
        page.line(f"{sentence(each)}{_where(each)}", 2)
    if not answer.complete:
        page.line("The cluster is large: the search ended before every change was tried.", 2)


def sentence(proposal: Proposal) -> str:
    """The changes in words: "it asked for 3500m cpu instead of 6 (node-12 has 3500m left)"."""
    return ", and ".join(_clause(each) for each in proposal.changes)


def _clause(change: object) -> str:
    if isinstance(change, LowerRequest):
        return f"{change} ({change.node} has {quantity(change.resource, change.to)} left)"
    return str(change)


def _where(proposal: Proposal) -> str:
    if any(isinstance(each, AddNode) for each in proposal.changes):
        return ""
    others = len(proposal.nodes) - 1
    return f": on {proposal.node}" + (f" or {others} other{'s' * (others > 1)}" if others else "")


# --- for programs


def explanation_document(found: Explanation, queue: Waiting, shown: Shown) -> Doc:
    """The same as one value."""
    decision = found.decision
    pod = found.pod
    whole: Doc = {
        "pod": {"namespace": pod.metadata.namespace, "name": pod.metadata.name},
        "schedulerName": pod.spec.scheduler_name,
        "node": found.on,
        "outcome": decision.outcome.value,
        "decision": {"node": decision.node, "because": decision.rule.value if decision.rule else ""},
        "bestNodes": [*decision.best],
        "nodes": decision.nodes,
        "feasible": len(decision.feasible),
    }
    if found.on:
        whole["compared"] = found.standing.name.lower()
    if decision.outcome is not Outcome.SCHEDULED:
        whole |= _pending_document(found, queue)
    names = [shown.node] if shown.node else found.ranked[: shown.top]
    whole["scores"] = [
        {"node": node, "total": decision.total(node), "plugins": dict(decision.scores[node])}
        for node in names
        if node in decision.scores
    ]
    whole["turnedAway"] = [
        {"plugin": each.name, "first": each.first, "all": each.all, "reasons": dict(each.reasons)}
        for each in found.turned_away
    ]
    if shown.nodes or shown.node:
        whole["refusals"] = {
            node: _refusal_documents(each) for node, each in found.refusals.items() if shown.node in ("", node)
        }
    return whole


def _pending_document(found: Explanation, queue: Waiting) -> Doc:
    decision, attempt = found.decision, found.decision.preemption
    return {
        "message": _message(decision),
        "waiting": {"since": queue.since, "attempts": queue.attempts, "told": queue.said},
        "gates": [each.name for each in found.pod.spec.scheduling_gates],
        "nominatedNode": found.pod.status.nominated_node_name,
        "preemption": attempt
        and {
            "node": attempt.node,
            "anyOf": [*attempt.any_of],
            "victims": [f"{namespace}/{name}" for namespace, name in attempt.victims.pods],
            "violations": attempt.victims.violations,
            "message": attempt.message,
        },
        "suggestions": [
            {
                "wouldFitIf": sentence(each),
                "changes": [_change_document(change) for change in each.changes],
                "node": each.node,
                "nodes": [*each.nodes],
            }
            for each in found.answer.proposals
        ],
        "complete": found.answer.complete,
    }


def _change_document(change: msgspec.Struct) -> Doc:
    plain: Doc = msgspec.to_builtins(change)
    if isinstance(change, AddNode):
        plain["node"] = change.node.metadata.name
    return plain


def _refusal_documents(refusals: Sequence[Refusal]) -> list[Doc]:
    return [{"plugin": each.plugin, "code": each.code, "reasons": [*each.reasons]} for each in refusals]
