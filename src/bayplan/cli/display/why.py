"""Why a pod is not placed, in one short sentence: what keeps it off the nodes, and the smallest change that would do.

The explanation is the scheduler's own (`bayplan explain` prints all of it), made when the scheduler has said something
new of the pod, or a while after that; a few at a time, since somebody looks at the picture meanwhile.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bayplan.cli.display.pod_words import refusal_of, why_waiting
from bayplan.cluster.kinds import NODE
from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.explanation import Explanation, explain
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.scheduling.whatif.lowering import amounts
from bayplan.scheduling.whatif.pod_changes import LowerRequest
from bayplan.simulate.twin.kinds import ALL
from bayplan.simulate.twin.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.model.pods import Pod
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.state import ClusterState
    from bayplan.scheduling.whatif import Proposal
    from bayplan.simulate.stage import Stage

_LACKS = "Insufficient "
_LACKING = "short of"
_SHORT = {
    "node(s) had untolerated taint(s)": "tainted",
    "node(s) didn't match Pod's node affinity/selector": "not selected",
    "node(s) were unschedulable": "cordoned",
    "node(s) didn't match pod anti-affinity rules": "with pods it keeps away from",
    "node(s) didn't match pod affinity rules": "without pods it wants near",
    "node(s) didn't match pod topology spread constraints": "against its spread",
    "Too many pods": "full of pods",
}
_NAMES = {"nvidia.com/gpu": "GPUs", "nvidia.com/gpu.shared": "GPU shares", "cpu": "CPU"}
_SCARCE = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
"""Where a node lacks several things, what is told: the dearest."""
_AT_ONCE = 8
_STALE = 300 * SECOND
_MOST_NODES = 300
"""On a larger cluster an explanation takes longer than a picture may."""


class _Said(NamedTuple):
    refusal: str
    at: Instant
    text: str


class Explainer:
    """The sentences for the pods of a stage, remembered from one picture to the next."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._known: dict[str, _Said] = {}
        self._shown: dict[str, _Said] = {}
        """Of those of this picture: others are forgotten with the next."""
        self._left = 0
        self._state: ClusterState | None = None
        configured = None if stage.scheduler is None else stage.scheduler.by_name()
        self._profiles: dict[str, Profile] = dict(configured or {})

    def begin(self) -> None:
        """Another picture."""
        nodes = sum(1 for _ in self._stage.cluster.world.store.objects(NODE))
        self._left = _AT_ONCE if nodes <= _MOST_NODES else 0
        self._known, self._shown = self._shown, {}
        self._state = None

    def why(self, pod: Pod) -> str:
        """Why it waits."""
        refusal = refusal_of(pod)
        if not refusal:
            return why_waiting(pod)
        known = self._known.get(pod.metadata.uid)
        if self._left and (known is None or known.refusal != refusal or self._stage.now - known.at > _STALE):
            self._left -= 1
            known = _Said(refusal, self._stage.now, self._sentence(pod))
        if known is None:
            return why_waiting(pod)
        self._shown[pod.metadata.uid] = known
        return known.text

    def _sentence(self, pod: Pod) -> str:
        name = pod.spec.scheduler_name
        profile = self._profiles.get(name) or default_profile(name)
        return short(explain(self._present(), profile, pod, suggestions=1)) or why_waiting(pod)

    def _present(self) -> ClusterState:
        if self._state is None:
            store = self._stage.cluster.world.store
            objects = tuple(item for kind in ALL if kind in store.kinds() for item in store.objects(kind))
            self._state = Snapshot(self._stage.now, "", objects).state()
        return self._state


def short(found: Explanation) -> str:
    """The sentence; empty where there is nothing to say."""
    decision = found.decision
    if decision.node:
        return "it fits now: the scheduler is about to try it"
    if decision.outcome is Outcome.GATED:
        return f"held back by its gates: {', '.join(each.name for each in found.pod.spec.scheduling_gates)}"
    if decision.whole is not None:
        return ", ".join(decision.whole.reasons)
    if nominated := found.pod.status.nominated_node_name:
        return f"waits for pods on {nominated} that make room for it"
    counts = Counter(_reason(refusals[0].reasons) for refusals in found.refusals.values())
    if not counts:
        return ""
    (reason, number), *others = sorted(counts.items(), key=lambda each: (-each[1], not each[0].startswith(_LACKING)))
    main = f"{number} node{'s' * (number != 1)} {reason}"
    rest = f" ({', '.join(f'{count} {other}' for other, count in others)})" if others else ""
    return "; ".join([main, *map(_remedy, found.answer.proposals[:1])]) + rest


def _reason(reasons: Iterable[str]) -> str:
    """What one node lacks, or is."""
    lacking = [each.removeprefix(_LACKS) for each in reasons if each.startswith(_LACKS)]
    if lacking:
        return f"{_LACKING} {_named(min(lacking, key=lambda each: each not in _SCARCE))}"
    first = next(iter(reasons), "")
    return _SHORT.get(first) or first.removeprefix("node(s) ")


def _named(resource: str) -> str:
    return _NAMES.get(resource, resource)


def _remedy(proposal: Proposal) -> str:
    if len(proposal.changes) == 1:
        (change,) = proposal.changes
        if isinstance(change, AddNode):
            return f"one more like {change.like} would do"
        if isinstance(change, LowerRequest):
            less, _ = amounts(change.resource, change.to, change.asked)
            name = _named(change.resource)
            return f"fits on {change.node} with {less} {name.removesuffix('s') if less == '1' else name}"
    return "fits if " + " and ".join(map(str, proposal.changes))
