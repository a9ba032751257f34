"""One pod, one decision: filter, score, choose; with every reason for it.

The search walks the nodes from where the last one ended, and wraps round. It ends when enough nodes are found, or
rather when one more turns up, which is dropped. A node that was nominated for the pod is tried first and alone.

Source of truth: kube-scheduler 1.36 schedule_one.go, with parallelism 1 and without extenders.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bayplan.scheduling.decision import Decision, GroupedRefusals, Outcome, TieRule
from bayplan.scheduling.filtering import Filters, prepare
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.messages import fit_error
from bayplan.scheduling.ties import heap_winner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bayplan.scheduling.framework import Plugin, Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_FEWEST = 100
"""Nodes that are always looked for, if there are as many."""
_SMALLEST_SHARE = 5


class Search(NamedTuple):
    """What a walk over the nodes has found."""

    feasible: list[NodeState]
    refusals: dict[str, Refusal]


class Choice(NamedTuple):
    """A node, why it is that one, and what each node got."""

    node: str
    rule: TieRule
    best: tuple[str, ...]
    scores: Mapping[str, Mapping[str, int]]


def decide(
    state: ClusterState, profile: Profile, pod: PodInfo, start: int = 0, *, score_single: bool = True
) -> Decision:
    """Where a pod goes. It is not put there, and nobody is evicted for it.

    `score_single`: whether a node without rivals is scored, too; upstream does not, explanations want it.
    """
    gate = gate_of(profile, pod)
    if gate is not None:
        return Decision(pod.key, Outcome.GATED, whole=gate, nodes=len(state.nodes), start=start, scored=False)
    filters = prepare(profile, pod, state) if state.nodes else Filters(())
    if filters.whole is not None or not state.nodes:
        return refused(state, pod, start, {}, filters)
    nominated = _nominated(state, pod, filters)
    if nominated is not None and nominated.feasible:
        search = nominated
    else:
        search = _search(state, profile, pod, start, filters)
        if nominated is not None:
            search = search._replace(refusals=search.refusals | nominated.refusals)
    if not search.feasible:
        return refused(state, pod, start, search.refusals, filters)
    choice = _choose(state, profile, pod, search.feasible, score_single=score_single)
    by_chance = filters.only is not None and len(choice.best) > 1
    return Decision(
        pod.key,
        Outcome.SCHEDULED,
        choice.node,
        TieRule.NOMINATED if search is nominated else choice.rule,
        nodes=len(state.nodes),
        start=start,
        feasible=tuple(node.name for node in search.feasible),
        scores=choice.scores,
        scored=len(search.feasible) > 1,
        best=choice.best,
        any_of=choice.best if by_chance else (),
        refusals=search.refusals,
        restricting=filters.restricting,
    )


def next_start(decision: Decision) -> int:
    """Where the next search begins. Only a search over the nodes moves it, failed or not."""
    if decision.whole is not None or decision.nodes == 0 or decision.rule is TieRule.NOMINATED:
        return decision.start
    return (decision.start + decision.evaluated) % decision.nodes


def gate_of(profile: Profile, pod: PodInfo) -> Refusal | None:
    """What keeps the pod out of the queue."""
    return next((refusal for plugin in profile.gates if (refusal := plugin.enqueue(pod))), None)


def enough(nodes: int, profile: Profile) -> int:
    """How many feasible nodes will do: the first, if none is scored."""
    return wanted(nodes, profile.percentage_of_nodes_to_score) if profile.scorers else 1


def wanted(nodes: int, percentage: int) -> int:
    """How many nodes are scored; percentage 0 stands for one that falls as clusters grow."""
    if nodes < _FEWEST:
        return nodes
    share = percentage or max(_SMALLEST_SHARE, 50 - nodes // 125)
    return max(_FEWEST, nodes * share // 100)


def _nominated(state: ClusterState, pod: PodInfo, filters: Filters) -> Search | None:
    """The node that waits for the pod, tried alone; even one that the node names leave out."""
    name = state.nomination_of(pod.key) or pod.pod.status.nominated_node_name
    node = state.node(name) if name else None
    if node is None:
        return None
    refusal = filters.check_among_nominated(node, pod, state)
    return Search([node], {}) if refusal is None else Search([], {node.name: refusal})


def _search(state: ClusterState, profile: Profile, pod: PodInfo, start: int, filters: Filters) -> Search:
    only = filters.only
    nodes = state.nodes if only is None else [node for node in state.nodes if node.name in only]
    most = enough(len(nodes), profile)
    first = start % len(nodes) if nodes else 0
    feasible: list[NodeState] = []
    refusals: dict[str, Refusal] = {}
    for node in (*nodes[first:], *nodes[:first]):
        refusal = filters.check_among_nominated(node, pod, state)
        if refusal is not None:
            refusals[node.name] = refusal
        elif len(feasible) == most:
            break
        else:
            feasible.append(node)
    if only is not None:
        named = " ".join(filters.restricting)
        elsewhere = Refusal("", (f"node(s) didn't satisfy plugin(s) [{named}]",), hopeless=True)
        refusals |= {node.name: elsewhere for node in state.nodes if node.name not in only}
    return Search(feasible, refusals)


def _choose(
    state: ClusterState, profile: Profile, pod: PodInfo, feasible: Sequence[NodeState], *, score_single: bool
) -> Choice:
    alone = len(feasible) == 1
    scores = score(state, profile.scorers, pod, feasible) if score_single or not alone else {}
    if alone:
        name = feasible[0].name
        return Choice(name, TieRule.ONLY, (name,), scores)
    totals = [sum(scores[node.name].values()) for node in feasible]
    most = max(totals)
    best = tuple(node.name for node, total in zip(feasible, totals, strict=True) if total == most)
    if len(best) == 1 or profile.ties == "first":
        return Choice(best[0], TieRule.BEST if len(best) == 1 else TieRule.FIRST, best, scores)
    return Choice(feasible[heap_winner(totals)].name, TieRule.HEAP, best, scores)


def score(
    state: ClusterState, scorers: Sequence[tuple[Plugin, int]], pod: PodInfo, nodes: Sequence[NodeState]
) -> dict[str, dict[str, int]]:
    """For each node what each plugin gives it, weight included. Plugins that are skipped are missing."""
    given: dict[str, dict[str, int]] = {node.name: {} for node in nodes}
    for plugin, weight in scorers:
        scorer = plugin.score(pod, state, nodes)
        if scorer is None:
            continue
        normalised = scorer.normalise(nodes, [scorer.score(node) for node in nodes])
        for node, points in zip(nodes, normalised, strict=True):
            given[node.name][plugin.name] = points * weight
    return given


def refused(
    state: ClusterState, pod: PodInfo, start: int, refusals: Mapping[str, Refusal], filters: Filters
) -> Decision:
    """The decision that no node will do."""
    tally = refusals.tally() if isinstance(refusals, GroupedRefusals) else Counter(refusals.values()).items()
    told = fit_error(len(state.nodes), tally, filters.whole)
    return Decision(
        pod.key,
        Outcome.UNSCHEDULABLE,
        nodes=len(state.nodes),
        start=start,
        scored=False,
        refusals=refusals,
        whole=filters.whole,
        restricting=filters.restricting,
        fit_error=told,
        message=told,
    )
