"""Families kubelet/cpu_assignment and kubelet/cpu_assignment_endless: one selection of CPUs.

Our own answer must be valid in every case: as many CPUs as were asked for, all of them available, or the recorded
refusal. What is compared with the recording is the compatibility mode.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.conformance.kubelet.cases import topology_of
from bayplan.node.cpu.assignment import take_packed
from bayplan.node.cpu.distributed import take_distributed
from bayplan.node.errors import AllocationError
from bayplan.node.sets import format_list, parse_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.conformance.kubelet.cases import Case
    from bayplan.node.cpu.assignment import Assignment

Answer = tuple[str, str | None]
"""CPUs and error."""


def run(case: Case) -> Verdict:
    """Run one case."""
    ours, upstream = answer(case), answer(case, as_upstream=True)
    recorded, copied = (case["result"], case["error"]), case.get("result_if_combos_copied")
    agrees = upstream == recorded or (copied is not None and ours == _copied(copied))
    apart = case.get("anomaly") or ("combinations overwritten" if copied is not None else "")
    told = invalid(case, ours) or ("" if agrees else f"{upstream!r}, expected {recorded!r}")
    return Verdict(case["id"], case["function"], agrees=not told, difference=told, apart="" if told else apart)


def run_endless(case: Case) -> Verdict:
    """Run one case on which upstream never returns: both modes must, with a valid answer."""
    told = invalid(case, answer(case)) or invalid(case, answer(case, as_upstream=True))
    return Verdict(case["id"], case["function"], agrees=not told, difference=told)


def answer(case: Case, *, as_upstream: bool = False) -> Answer:
    """What we select."""
    try:
        return format_list(_take(case)(as_upstream=as_upstream).cpus), None
    except AllocationError as error:
        return "", error.message


def _take(case: Case) -> Callable[..., Assignment]:
    asked = topology_of(case), parse_list(case["available"]), case["num_cpus"]
    spread = case["strategy"] == "spread"
    if case["function"] == "packed":
        return functools.partial(take_packed, *asked, spread=spread, prefer_cache=case["prefer_uncore"])
    return functools.partial(take_distributed, *asked, spread=spread, group=case["cpu_group_size"])


def invalid(case: Case, found: Answer) -> str:
    """What is wrong with an answer of ours, whatever upstream's is."""
    cpus, error = found
    available, got, asked = parse_list(case["available"]), parse_list(cpus), max(case["num_cpus"], 0)
    if error is not None:
        return "" if asked > available.bit_count() else f"refused: {error}"
    if got & ~available:
        return f"busy CPUs handed out: {format_list(got & ~available)}"
    return "" if got.bit_count() == asked else f"{got.bit_count()} CPUs, expected {asked}"


def _copied(text: str) -> Answer:
    refusal = text.removeprefix("error: ")
    return (text, None) if refusal == text else ("", refusal)
