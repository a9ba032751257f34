"""Family kubelet/topology_merge: the hints of several providers, merged by a policy."""

from __future__ import annotations

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.cases import Case
from bayplan.node.machine import NumaNode
from bayplan.node.policies import TopologyPolicies
from bayplan.node.sets import ids_of, mask_of
from bayplan.node.topology.hint import Hint, Hints
from bayplan.node.topology.manager import TopologyManager


def run(case: Case) -> Verdict:
    """Run one case: the best hint and the admission must agree."""
    merged, admitted = _manager(case).decide([_hints(each) for each in case["providers"]])
    nodes = None if merged.hint.nodes is None else [*ids_of(merged.hint.nodes)]
    ours, theirs = ([nodes, merged.hint.preferred], admitted), (case["best_hint"], case["admit"])
    told = "" if ours == theirs else f"{ours}, expected {theirs}"
    return Verdict(case["id"], case["policy"], agrees=not told, difference=told)


def _manager(case: Case) -> TopologyManager:
    rows = case.get("distances") or {}
    nodes = [NumaNode(id=each, memory=0, distances=dict(enumerate(rows.get(str(each), ())))) for each in case["nodes"]]
    options = {"prefer-closest-numa-nodes": "true"} if case["prefer_closest_numa"] else {}
    return TopologyManager(TopologyPolicies(policy=case["policy"], options=options), nodes)


def _hints(provider: Case | None) -> Hints:
    if provider is None:
        return None
    return {name: None if hints is None else [_hint(each) for each in hints] for name, hints in provider.items()}


def _hint(pair: list[object]) -> Hint:
    nodes, preferred = pair
    return Hint(mask_of(nodes) if isinstance(nodes, list) else None, bool(preferred))
