"""The page that a run writes: every step of every story, what was compared, and every difference with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from tests.stories.compare import Difference, compare
from tests.stories.plain import NOT_COMPARED
from tests.stories.run import Seen
from tests.stories.story import Story

_HEAD = """# Stories: the controllers beside the real ones

Written by `pytest tests/stories --update-stories`. Each story of `tests/stories` ran twice, driven by the same kubectl:
on a real control plane (etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.36, with KWOK for kubelets)
and on the embedded engine served over HTTP. After each step the objects (metadata, spec and status, with names made up,
times and uids taken out), the Events about each object in their order with their messages, and kubectl's own words are
compared.

| story | step | objects | Events | differences |
|---|---|--:|--:|---|
"""
_KNOWN = """
## Known differences

| story | step | where | reason |
|---|---|---|---|
"""
_LEFT_OUT = """
## Not compared in any story

| kind | fields | reason |
|---|---|---|
"""
_CHANCE = (
    ("Pod, Node", "reasons, messages and order of the conditions that kubelets keep", "as above"),
    ("Node", "the order of taints", "several workers of the real controller add them, in an order of chance"),
    ("Event", "those of kubelets", "KWOK tells none"),
    ("Event", "counts, and retries after the first", "how often is chance"),
    ("Event", "the order among pods that a ReplicaSet, DaemonSet or Job makes or deletes at a time", "chance as well"),
    ("Event", "which nodes do not fit, in `FailedScheduling`", "nodes of other stories are among them"),
)


def report(told: Sequence[tuple[Story, Sequence[Seen], Sequence[Seen]]]) -> str:
    """The page."""
    rows, known = [], []
    for story, lab, embedded in told:
        differences = compare(story, lab, embedded)
        for number, (step, seen) in enumerate(zip(story.steps, lab, strict=True), 1):
            own = [each for each in differences if each.step == number]
            events = sum(len(said) for lists in seen.events.values() for said in lists)
            title = story.title if number == 1 else ""
            rows.append(f"| {title} | {number}. {step.tell} | {len(seen.objects)} | {events} | {_verdict(own)} |")
        known += [
            f"| {story.title} | {each.step or 'any'} | `{each.at}` | {each.reason} |" for each in story.differences
        ]
    left_out = [
        f"| {kind} | {', '.join(f'`{part}.{field}`' for field in fields)} | {reason} |"
        for kind, part, fields, reason in NOT_COMPARED
    ] + [f"| {kind} | {what} | {reason} |" for kind, what, reason in _CHANCE]
    return _HEAD + _lines(rows) + _KNOWN + _lines(known) + _LEFT_OUT + _lines(left_out)


def _verdict(differences: Sequence[Difference]) -> str:
    unknown = sum(1 for each in differences if each.known is None)
    if unknown:
        return f"**{unknown} unexplained**"
    return f"{len(differences)} known" if differences else "none"


def _lines(rows: Sequence[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
