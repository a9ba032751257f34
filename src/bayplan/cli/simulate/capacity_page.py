"""Answers of `bayplan simulate capacity` as people read them, and as programs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.cli.describe.page import Page
from bayplan.cli.explanation_page import sentence
from bayplan.cli.twin import described
from bayplan.model.clock import rfc3339
from bayplan.model.resources import pod_requests
from bayplan.scheduling.whatif.lowering import quantity
from bayplan.simulate.twin.capacity import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.model.pods import Pod
    from bayplan.scheduling.explanation import Explanation
    from bayplan.simulate.twin.adding import Addition
    from bayplan.simulate.twin.capacity import Alike, Fit
    from bayplan.simulate.twin.questions import Overview, PodAnswer
    from bayplan.simulate.twin.rerun import Rerun
    from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_FEW = 6
_EXACT = "exact: no other way of placing them fits more"
_REACHED = "what this scheduler gets to: their rules about each other leave open whether another order fits more"
_GPUS_ALONE = "GPUs alone are asked for, no cores or memory: the most that may fit"


def overview_page(found: Overview, snapshot: Snapshot) -> str:
    """What else fits."""
    page = Page(snapshot.at)
    page.pairs([("Cluster", f"{snapshot.source}: {described(snapshot)}")])
    page.table(
        "More By GPU Model",
        ["Resource", "Model", "A Pod", "More Pods", "Nodes"],
        [[each.resource, each.model or "-", str(each.devices), _number(fit), _nodes(fit)] for each, fit in found.gpus],
    )
    if found.gpus:
        page.line(f"({_GPUS_ALONE})", 2)
    page.table(
        "More Like Those There",
        ["Namespace", "Pods", "Ask For", "Placed", "Pending", "More Pods"],
        [
            [
                each.pod.metadata.namespace,
                _called(each),
                asks(each.pod),
                str(each.placed),
                str(each.pending),
                _number(fit),
            ]
            for each, fit in found.alike
        ],
    )
    _rest(page, found.others)
    page.table(
        "Pending",
        ["Namespace", "Pods", "Number", "Would Fit If"],
        [[each.pod.metadata.namespace, _called(each), str(each.pending), _remedy(why)] for each, why in found.waiting],
    )
    _rest(page, found.more_waiting)
    fits = [fit for _, fit in (*found.gpus, *found.alike)]
    page.pairs([("Verified", _verified(fits))])
    return page.text()


def _rest(page: Page, number: int) -> None:
    if number:
        page.line(f"and {number} more sort{'s' * (number > 1)} of pods: --top shows more", 2)


def pod_page(answer: PodAnswer, snapshot: Snapshot) -> str:
    """How many more of a pod, and what more of them need."""
    page, fit, meta = Page(snapshot.at), answer.fit, answer.pod.metadata
    page.pairs(
        [
            ("Cluster", f"{snapshot.source}: {described(snapshot)}"),
            ("Pod", f"{meta.namespace}/{meta.name}: {asks(answer.pod)}"),
            ("More Pods", f"{_number(fit)} ({_EXACT if fit.exact else _REACHED})"),
            ("On", _nodes(fit) if fit.number else None),
            ("The Next One", fit.why or None),
            ("To Add", None if answer.addition is None else _addition(answer.addition)),
            ("Would Fit If", None if answer.explanation is None else _remedies(answer.explanation)),
            ("Verified", _verified([fit])),
            ("On A Copy", _rerun(answer.rerun)),
        ]
    )
    return page.text()


def asks(pod: Pod) -> str:
    """`8 cpu, 64Gi memory, 4 nvidia.com/gpu`."""
    found = {name: amount for name, amount in pod_requests(pod).items() if amount}
    return ", ".join(f"{quantity(name, amount)} {name}" for name, amount in found.items()) or "nothing"


def _number(fit: Fit) -> str:
    return f"at least {fit.number}" if not fit.why and fit.number >= MOST else str(fit.number)


def _nodes(fit: Fit) -> str:
    most = sorted(fit.nodes.items(), key=lambda each: (-each[1], each[0]))
    more = len(most) - _FEW
    named = ", ".join(f"{name} ({number})" for name, number in most[:_FEW])
    return (named + (f" and {more} more" if more > 0 else "")) or "-"


def _called(sort: Alike) -> str:
    return sort.owner or f"Pod/{sort.pod.metadata.name}"


def _verified(fits: list[Fit]) -> str:
    wrong = sum(not fit.verified for fit in fits)
    if wrong:
        return f"NO: for {wrong} of these numbers a rerun with the readable filters comes to another"
    return "every number by a rerun on another copy, with the readable filters; nobody is evicted"


def _remedies(why: Explanation) -> list[str]:
    found = [sentence(each) for each in why.answer.proposals]
    return found or ["no change that is searched for would do"]


def _remedy(why: Explanation) -> str:
    if why.decision.node:
        return f"it fits now: on {why.decision.node}"
    return _remedies(why)[0]


def _addition(found: Addition) -> list[str]:
    if not found.enough:
        takes = ", ".join(f"like {name}: {number}" for name, number in found.takes.items())
        return [f"no set of nodes was found for {found.wanted}; of the pod one empty node takes: {takes or 'none'}"]
    size = "no smaller set would do" if found.exact else "an upper bound: a smaller set may do"
    lines = [
        f"{number} like {name} ({_offers(found.shapes[name].offers)})" for name, number in sorted(found.nodes.items())
    ]
    return [f"{sum(found.nodes.values())} for {found.wanted} in all ({size}):", *lines]


def _offers(offers: Mapping[str, str]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in offers.items())


def _rerun(found: Rerun) -> str:
    text = f"{found.placed} of {found.asked} that were tried were placed"
    if found.refusal:
        text += f"; only {found.created} could be created: {found.refusal}"
    return text


# --- for programs


def _fit(fit: Fit) -> Doc:
    return {
        "more": fit.number,
        "atLeast": not fit.why and fit.number >= MOST,
        "exact": fit.exact,
        "verified": fit.verified,
        "nodes": dict(fit.nodes),
        "theNextOne": fit.why,
    }


def _head(snapshot: Snapshot) -> Doc:
    return {
        "source": snapshot.source,
        "at": rfc3339(snapshot.at),
        "lacking": [*snapshot.lacking],
        "notes": [*snapshot.notes],
    }


def _sort(sort: Alike) -> Doc:
    meta = sort.pod.metadata
    return {
        "namespace": meta.namespace,
        "pod": meta.name,
        "owner": sort.owner,
        "requests": {name: str(quantity(name, amount)) for name, amount in pod_requests(sort.pod).items()},
        "placed": sort.placed,
        "pending": sort.pending,
    }


def _proposals(why: Explanation) -> list[Doc]:
    return [
        {"changes": msgspec.to_builtins(each.changes), "text": sentence(each), "node": each.node}
        for each in why.answer.proposals
    ]


def overview_document(found: Overview, snapshot: Snapshot) -> Doc:
    """What else fits."""
    return {
        "kind": "Capacity",
        **_head(snapshot),
        "nodes": found.nodes,
        "placed": found.placed,
        "pending": found.pending,
        "byGpuModel": [
            {"resource": each.resource, "model": each.model, "devices": each.devices, **_fit(fit)}
            for each, fit in found.gpus
        ],
        "byPod": [{**_sort(each), **_fit(fit)} for each, fit in found.alike],
        "waiting": [
            {**_sort(each), "node": why.decision.node, "message": why.decision.message, "proposals": _proposals(why)}
            for each, why in found.waiting
        ],
    }


def pod_document(answer: PodAnswer, snapshot: Snapshot) -> Doc:
    """How many more of a pod."""
    addition = answer.addition
    meta = answer.pod.metadata
    return {
        "kind": "PodCapacity",
        **_head(snapshot),
        "namespace": meta.namespace,
        "pod": meta.name,
        **_fit(answer.fit),
        "addition": None
        if addition is None
        else {
            "wanted": addition.wanted,
            "enough": addition.enough,
            "exact": addition.exact,
            "nodes": dict(addition.nodes),
            "oneTakes": dict(addition.takes),
            "verified": addition.then.verified,
        },
        "proposals": [] if answer.explanation is None else _proposals(answer.explanation),
        "rerun": msgspec.to_builtins(answer.rerun),
    }
