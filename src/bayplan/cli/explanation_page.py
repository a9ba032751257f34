"""An explanation as people read it, and as programs do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.describe.page import NONE, moment
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.explanation import Explanation, Standing, Waiting
from bayplan.scheduling.preemption.attempt import UNDER_WAY
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.scheduling.whatif.lowering import amounts, quantity
from bayplan.scheduling.whatif.pod_changes import LowerRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bayplan.cli.describe.page import Page
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.framework import Refusal
    from bayplan.scheduling.whatif import Proposal

Doc = dict[str, Any]
Pairs = list[tuple[str, str | list[str] | None]]

_ELSEWHERE = "node names"
"""What is shown for a refusal of nodes that the pod's affinity does not name: no plugin's own."""

_NARROWEST = 40
"""With less room than that, broken lines are no easier to read."""


class Shown(msgspec.Struct, frozen=True):
    """How much is to be shown: so many nodes with their scores, every node's refusals, or those of one node.

    Sentences are broken at `width`, the terminal's; 0 leaves them whole, for those who search in them.
    """

    top: int = 10
    nodes: bool = False
    node: str = ""
    width: int = 0


def explanation_page(found: Explanation, queue: Waiting, shown: Shown, page: Page) -> None:
    """The whole page."""
    queued = [] if found.on else _queued(found, queue, page)
    decided = _placed(found, shown) if found.decision.node else _pending(found, shown)
    page.pairs(_broken([*_head(found), *queued, *decided], shown.width))
    if found.decision.feasible:
        _scores(found, shown, page)
    if found.refusals:
        _turned_away(found, page)
    if shown.nodes or shown.node:
        _refusals(found, shown, page)
    _suggestions(found, shown, page)


def _broken(pairs: Pairs, width: int) -> Pairs:
    """The values in lines that end before the terminal does."""
    kept = [(name, [value] if isinstance(value, str) else value) for name, value in pairs if value is not None]
    room = width - max(len(name) for name, _ in kept) - len(":  ")
    return [(name, [line for each in values for line in _lines(each, room)]) for name, values in kept]


def _lines(text: str, room: int, further_in: str = "") -> list[str]:
    if room < _NARROWEST:
        return [text]
    return textwrap.wrap(text, room, subsequent_indent=further_in, break_long_words=False, break_on_hyphens=False)


def _few(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


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
        ("Pending", _not_tried(found, queue) if queue.since and found.decision.node else None),
    ]


def _not_tried(found: Explanation, queue: Waiting) -> str:
    if queue.said or queue.attempts:
        return "it was refused when it was last tried; by what was read for this page it fits now"
    return f'it fits, but no scheduler has tried it: check that "{found.pod.spec.scheduler_name}" runs'


# --- a pod that fits


def _placed(found: Explanation, shown: Shown) -> Pairs:
    decision = found.decision
    assert decision.rule is not None  # it has a node
    fits = f"{len(decision.feasible)} of {decision.nodes} nodes fit"
    pairs: Pairs = [
        ("Decision", [f"{decision.node}, decided on the cluster as it is now" + _without(found), fits]),
        ("Because", decision.rule.value),
        ("Best Nodes", _few(decision.best, shown.top) if len(decision.best) > 1 else None),
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
    common = _common(decision, found.scorers)
    telling = [plugin for plugin in found.scorers if plugin not in common]
    page.table(
        "Scores",
        ["Node", "Total", *telling],
        [[_marked(node, found), str(decision.total(node)), *_points(decision, node, telling)] for node in rows],
    )
    if len(rows) < len(ranked) and not shown.node:
        page.line(f"and {len(ranked) - len(rows)} more: --top {len(ranked)} shows all", 2)
    if common:
        same = ", ".join(f"{plugin} {points}" for plugin, points in common.items())
        for line in _lines(f"in every total: {same}", shown.width - 2, "  "):
            page.line(line, 2)


def _common(decision: Decision, plugins: Iterable[str]) -> dict[str, int]:
    """What says nothing about one node more than another: plugins that gave all the same, or a single node nothing."""
    found = {}
    for plugin in plugins:
        first, *others = {scores.get(plugin) for scores in decision.scores.values()}
        if first is not None and not others and (len(decision.scores) > 1 or not first):
            found[plugin] = first
    return found


def _marked(node: str, found: Explanation) -> str:
    marks = [word for word, other in (("chosen", found.decision.node), ("here", found.on)) if other == node]
    return f"{node} ({', '.join(marks)})" if marks else node


def _points(decision: Decision, node: str, plugins: Iterable[str]) -> list[str]:
    scores = decision.scores[node]
    return [str(scores[plugin]) if plugin in scores else "-" for plugin in plugins]


# --- a pod that does not


def _pending(found: Explanation, shown: Shown) -> Pairs:
    decision = found.decision
    gates = [each.name for each in found.pod.spec.scheduling_gates]
    return [
        ("Scheduling Gates", gates or None),
        ("Message", _message(decision)),
        ("Nominated Node", found.pod.status.nominated_node_name or None),
        ("Preemption", _preemption(found, shown)),
        ("Compared", f"the decision now is {Standing.NOWHERE.value}" if found.on else None),
    ]


def _message(decision: Decision) -> str:
    return decision.message or (", ".join(decision.whole.reasons) if decision.whole else "")


def _preemption(found: Explanation, shown: Shown) -> str | list[str] | None:
    attempt = found.decision.preemption
    if attempt is None:
        return None
    if attempt.message == UNDER_WAY:
        return f"under way: it waits for pods on {found.pod.status.nominated_node_name} to end"
    if not attempt.node:
        return "evicts nobody" if attempt.message else "is not enabled"
    victims = [f"{namespace}/{name}" for namespace, name in attempt.victims.pods]
    broken = attempt.victims.violations
    lines = [f"would evict {', '.join(victims)} from {attempt.node}"]
    if broken:
        lines.append(f"against the disruption budget of {broken} of them")
    others = [node for node in attempt.any_of if node != attempt.node]
    if others:
        lines.append(f"or pods from {_few(others, shown.top)}: kube-scheduler takes any of these nodes")
    return lines


def _turned_away(found: Explanation, page: Page) -> None:
    page.table(
        "Turned Away By",
        ["Plugin", "Nodes", "First", "Reasons"],
        [
            [
                each.name or _ELSEWHERE,
                str(each.all),
                str(each.first),
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


def _suggestions(found: Explanation, shown: Shown, page: Page) -> None:
    if found.decision.node or found.on:
        return
    answer = found.answer
    page.heading("Would Fit If")
    for each in [f"{sentence(each)}{_where(each)}" for each in answer.proposals] or [_helpless(found)]:
        for line in _lines(each, shown.width - 2, "  "):
            page.line(line, 2)
    if not answer.complete:
        page.line("The cluster is large: the search ended before every change was tried.", 2)


def _helpless(found: Explanation) -> str:
    whole = found.decision.whole
    if whole is not None:
        return f"this were mended, which no change to nodes can do: {', '.join(whole.reasons)}"
    if not found.answer.complete:
        return "no change was found that would do; --nodes shows every refusal"
    return "no change that is searched for would do, nor two or three together; --nodes shows every refusal"


def sentence(proposal: Proposal) -> str:
    """The changes in words: "it asked for 3.5 cpu instead of 6 (node-12 has 3.5 left)"."""
    return ", and ".join(_clause(each, proposal) for each in proposal.changes)


def _clause(change: object, proposal: Proposal) -> str:
    if isinstance(change, LowerRequest) and change.node == proposal.node:
        return f"{change} ({change.node} has {amounts(change.resource, change.to, change.asked)[0]} left)"
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
        del plain["size"]  # what shapes are compared by; it is in `offers`
    if isinstance(change, LowerRequest):
        plain |= {name: str(quantity(change.resource, plain[name])) for name in ("asked", "to")}
    return plain


def _refusal_documents(refusals: Sequence[Refusal]) -> list[Doc]:
    return [{"plugin": each.plugin, "code": each.code, "reasons": [*each.reasons]} for each in refusals]
