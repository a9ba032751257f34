"""One real answer beside our decision: the same, another of our best, or different, and in the same words or not."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bayplan.scheduling.decision import Decision, Outcome, Preemption, Victims
from bayplan.scheduling.pods import PodKey


class Verdict(StrEnum):
    """How a decision came out."""

    SAME = "same"
    OPEN = "open"
    """Upstream draws lots here, and drew one that we allow."""
    BEST = "best"
    """Another node, with the same best total."""
    WORDS = "words"
    """Refused by both, and for preemption with the same result, but in other words."""
    DIFFERENT = "different"


class Answer(msgspec.Struct, frozen=True):
    """What the real scheduler did with a pod: bound it, or refused it with a message and perhaps a nomination."""

    node: str = ""
    message: str = ""
    nominated: str = ""
    victims: frozenset[PodKey] = frozenset()
    """Who had to go for the nomination."""

    def __str__(self) -> str:
        if self.node:
            return f"bound to {self.node}"
        names = ", ".join(sorted(name for _, name in self.victims))
        waits = f", nominated for {self.nominated} in place of {names}" if self.nominated else ""
        return f"refused{waits}: {self.message}"


def judge(decision: Decision, answer: Answer) -> Verdict:
    """Compare them."""
    if (decision.outcome is Outcome.SCHEDULED) != bool(answer.node):
        return Verdict.DIFFERENT
    return _judge_place(decision, answer.node) if answer.node else _judge_refusal(decision, answer)


def _judge_place(decision: Decision, node: str) -> Verdict:
    if decision.any_of:
        return Verdict.OPEN if node in decision.any_of else Verdict.DIFFERENT
    if node == decision.node:
        return Verdict.SAME
    return Verdict.BEST if node in decision.best else Verdict.DIFFERENT


def _judge_refusal(decision: Decision, answer: Answer) -> Verdict:
    ours = decision.preemption or Preemption()
    allowed = ours.any_of or (ours.node,)
    victims = ours.candidates.get(answer.nominated, Victims(())).pods
    if answer.nominated not in allowed or answer.victims != {*victims}:
        return Verdict.DIFFERENT
    if answer.message != decision.message:
        return Verdict.WORDS
    return Verdict.OPEN if ours.any_of else Verdict.SAME


def explain(decision: Decision, answer: Answer) -> str:
    """Both sides' reasons, for one who has to find out which is right."""
    lines = [f"real: {answer}", f"ours: {_ours(decision)}"]
    if answer.node in decision.refusals:
        refusal = decision.refusals[answer.node]
        lines.append(f"  {answer.node} is refused by {refusal.plugin}: {', '.join(refusal.reasons)}")
    for node in dict.fromkeys((answer.node, decision.node)):
        if node in decision.scores:
            scores = ", ".join(f"{plugin} {score}" for plugin, score in decision.scores[node].items())
            lines.append(f"  {node} has {decision.total(node)}: {scores}")
    return "\n".join(lines)


def _ours(decision: Decision) -> str:
    if decision.outcome is Outcome.SCHEDULED:
        return f"{decision.node}, since {decision.rule}; best: {', '.join(decision.best)}"
    ours = decision.preemption or Preemption()
    return str(Answer(message=decision.message, nominated=ours.node, victims=frozenset(ours.victims.pods)))
