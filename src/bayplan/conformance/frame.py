"""The frame: read the cases of a file, run each, compare, count, report.

A family knows how to run one case and say how it came out. The frame knows nothing of Kubernetes.
"""

from __future__ import annotations

import gzip
import importlib
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError

MOST_SHOWN = 20
"""Disagreements printed; the rest is counted."""


class FamilyUnknownError(PermanentError):
    """No such family of vectors."""

    code = "BP-V001"


class BrokenVectorsError(PermanentError):
    """The file of vectors cannot be read."""

    code = "BP-V002"


class Verdict(msgspec.Struct, frozen=True):
    """How one case came out. `apart` says why upstream itself does not decide it; then it does not count."""

    id: str
    group: str
    agrees: bool
    difference: str = ""
    apart: str = ""
    broke: bool = False
    """Whether the case could not be run at all."""


RunCase = Callable[[dict[str, Any]], Verdict]

FAMILIES: dict[str, str] = {
    "apiserver/admission": "bayplan.conformance.admission:run",
    "apiserver/patch": "bayplan.conformance.patch:run",
    "apiserver/table": "bayplan.conformance.table:run",
    "cpuburst/koord_cpuburst": "bayplan.conformance.cpuburst:run",
    "kubelet/memory_manager": "bayplan.conformance.kubelet.memory_manager:run",
    "kubelet/node_admission": "bayplan.conformance.kubelet.node_admission:run",
    "kubelet/topology_merge": "bayplan.conformance.kubelet.topology_merge:run",
    "kubelet/cpu_assignment": "bayplan.conformance.kubelet.cpu_assignment:run",
    "kubelet/cpu_assignment_endless": "bayplan.conformance.kubelet.cpu_assignment:run_endless",
    "kubelet/static_policy": "bayplan.conformance.kubelet.static_policy:run",
    "kubelet/topology_hints": "bayplan.conformance.kubelet.topology_hints:run",
    "sched/decisions": "bayplan.conformance.scheduling.decisions:run",
    "sched/preemption": "bayplan.conformance.scheduling.preemption:run",
    "sched/sequences": "bayplan.conformance.scheduling.sequences:run",
    "sched/strategies": "bayplan.conformance.scheduling.strategies:run",
    "sched/ties": "bayplan.conformance.scheduling.ties:run",
}
"""Where each family's runner is; read when it is asked for."""


def runner(family: str) -> RunCase:
    """The function that runs a case of the family. Raises FamilyUnknownError."""
    if family not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise FamilyUnknownError(f'no family "{family}" of vectors', hint=f"known families: {known}")
    module, _, name = FAMILIES[family].partition(":")
    run: RunCase = getattr(importlib.import_module(module), name)
    return run


def family_of(path: Path) -> str:
    """The family that a file's place tells; "" where it tells none."""
    name = f"{path.resolve().parent.name}/{path.name.partition('.')[0]}"
    return name if name in FAMILIES else ""


def judge(run: RunCase, case: dict[str, Any]) -> Verdict:
    """Run one case. A core that breaks on it disagrees: the other cases still count."""
    try:
        return run(case)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"broke with {error!r} at {Path(where.filename).name}:{where.lineno}"
        return Verdict(str(case.get("id")), str(case.get("kind")), agrees=False, difference=told, broke=True)


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file: one JSON object a line, plain or gzipped. Raises BrokenVectorsError with the line."""
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise BrokenVectorsError(f"{path}: {why}", hint="give a .jsonl or .jsonl.gz file of the family") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.MsgspecError as error:
                raise BrokenVectorsError(f"{path}:{number}: {error}", hint="expected one JSON object a line") from error


class Report:
    """What a run has shown so far."""

    def __init__(self) -> None:
        self.agreed: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.apart: Counter[str] = Counter()
        self.disagreements: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count one case."""
        if verdict.apart:
            self.apart[verdict.apart] += 1
            return
        self.total[verdict.group] += 1
        if verdict.agrees:
            self.agreed[verdict.group] += 1
        else:
            self.disagreements.append(verdict)

    @property
    def empty(self) -> bool:
        """Whether no case has been counted at all, which is no agreement either."""
        return not self.total and not self.apart

    @property
    def is_of_another_family(self) -> bool:
        """Whether not a single case could be run."""
        return bool(self.total) and sum(each.broke for each in self.disagreements) == self.total.total()

    @property
    def all_agree(self) -> bool:
        """Whether every case that counts agrees."""
        return not self.disagreements

    def lines(self, most: int = MOST_SHOWN) -> Iterator[str]:
        """The report: disagreements, a line a group, what was set apart, the total."""
        for verdict in self.disagreements[:most]:
            yield f"{verdict.id} {verdict.group}: {verdict.difference}"
        if len(self.disagreements) > most:
            yield f"(+{len(self.disagreements) - most} more disagreements)"
        for group in self.total:
            yield f"{group} agree {self.agreed[group]}/{self.total[group]}"
        if self.apart:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.apart.most_common())
            yield f"set apart {self.apart.total()}: {reasons}"
        yield f"agree {self.agreed.total()}/{self.total.total()}"
