"""How a workload is doing: by the rules of its kind, else by what objects commonly say, else by its pods."""

from __future__ import annotations

from bayplan.ledger.status.document import Document
from bayplan.ledger.status.kinds import RULES, GroupKind
from bayplan.ledger.status.rules import Rule, said, switched
from bayplan.ledger.status.verdict import PodCounts, State, Verdict

_WORDS: dict[State, str] = {
    State.SUCCEEDED: "succeeded complete completed finished done",
    State.FAILED: "failed failure error errored aborted cancelled canceled stopped terminated killed",
    State.SUSPENDED: "suspended paused",
    State.RUNNING: "running active ready available healthy",
    State.DEGRADED: "degraded unhealthy restarting recovering",
    State.PENDING: "pending created creating waiting queued queueing initializing starting scheduling retrying",
}
_STATE_OF = {name: state for state, names in _WORDS.items() for name in names.split()}
_PHASES = ("status.phase", "status.state", "status.state.phase", "status.jobStatus")
_ENDS = (State.SUCCEEDED, State.FAILED)


def _phase(wanted: tuple[State, ...]) -> Rule:
    def rule(doc: Document) -> Verdict | None:
        for path in _PHASES:
            found = doc.text(path)
            if (state := _STATE_OF.get(found.lower())) in wanted and state is not None:
                return Verdict(state, found, state in _ENDS)
        return None

    return rule


COMMON: tuple[Rule, ...] = (
    *(said(name, State.FAILED) for name in ("Failed", "Failure")),
    *(said(name, State.SUCCEEDED) for name in ("Succeeded", "Complete", "Completed", "Finished")),
    _phase(_ENDS),
    said("Suspended", State.SUSPENDED),
    switched("spec.suspend"),
    said("Degraded", State.DEGRADED),
    *(said(name, State.RUNNING) for name in ("Ready", "Available", "Running")),
    *(said(name, State.PENDING, status="False") for name in ("Ready", "Available")),
    _phase((State.SUSPENDED, State.RUNNING, State.DEGRADED, State.PENDING)),
)
"""What objects of kinds that nobody knows commonly say. Their own word of an end counts."""


def of_object(kind: GroupKind, doc: Document) -> Verdict | None:
    """What the object says of itself; None where it says nothing."""
    for rule in RULES.get(kind, COMMON):
        if (verdict := rule(doc)) is not None:
            return verdict
    return None


def of_pods(pods: PodCounts, *, ever: bool = True) -> Verdict:
    """What the pods say, or that there are none any more, or yet. It is never final: who made them may make more."""
    going = pods.pending + pods.running
    if going:
        state = State.PENDING if not pods.running else State.DEGRADED if pods.pending or pods.failed else State.RUNNING
        return Verdict(state, f"{pods.running} of {going + pods.failed} pods running")
    if len(pods):
        state = State.FAILED if pods.failed else State.SUCCEEDED
        return Verdict(state, f"{pods.succeeded} of {len(pods)} pods succeeded")
    return Verdict(State.SUSPENDED, "no pods") if ever else Verdict(State.PENDING, "no pods yet")


def judge(kind: GroupKind, own: Verdict | None, pods: PodCounts, *, deleting: bool = False) -> Verdict:
    """How it is doing, given what the object says of itself (`of_object`) and its pods."""
    verdict = of_pods(pods) if own is None else own
    if verdict.final:
        return verdict
    if deleting:
        return Verdict(State.TERMINATING, f"deletion was asked for while {verdict.state.value}")
    if own is not None and own.state is State.PENDING and pods.running and kind not in RULES:
        return Verdict(State.DEGRADED, f"{own.reason}; {pods.running} pods running")
    return verdict
