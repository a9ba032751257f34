"""The kubelet's cpu_manager_state: formats V1 to V4.

V1 has no pods: kubelets before 1.18 wrote container ids. V3 added CPUs of whole pods, V4 (1.37) what containers had
before they were resized.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.node.checkpoint.errors import CheckpointError
from bayplan.node.checkpoint.go_dump import Field, mapping, struct, text
from bayplan.node.checkpoint.kubelet import Form, Wrapped, decoded, fitting, unwrapped
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import StateError
from bayplan.node.sets import BadListError, CpuSet, format_list, ids_of, parse_list

FILE = "cpu_manager_state"
"""Under the kubelet's root, /var/lib/kubelet."""

_NAME = "CPUManagerCheckpoint"


class KubeletCpus(msgspec.Struct, frozen=True):
    """What the kubelet remembers of CPUs."""

    version: int
    policy: str
    state: CpuState
    """In V1 the pod is empty and containers are ids."""
    pods: dict[str, CpuSet] = msgspec.field(default_factory=dict)
    """CPUs of whole pods."""
    before_resize: dict[str, dict[str, CpuSet]] = msgspec.field(default_factory=dict)


class _PodEntry(msgspec.Struct, frozen=True):
    cpus: str = msgspec.field(default="", name="cpuSet")


class _Baseline(msgspec.Struct, frozen=True):
    baseline: str = ""


class _Content(msgspec.Struct, frozen=True, rename="camel"):
    policy_name: str
    default_cpu_set: str
    entries: dict[str, dict[str, str] | str] | None = None
    pod_entries: dict[str, _PodEntry] | None = None
    baselines: dict[str, dict[str, _Baseline]] | None = None


def _elements(text_: str) -> str:
    return f"map[{' '.join(f'{cpu}:{{}}' for cpu in ids_of(parse_list(text_ or '')))}]"


_CPU_SET = struct(Field("elems", "set", "map[int]struct {}", _elements))
_POD_ENTRY = struct(Field("CPUSet", "cpuSet", "cpuset.CPUSet", lambda given: _CPU_SET({"set": given})))

_HEAD = (
    Field("PolicyName", "policyName", "string", text),
    Field("DefaultCPUSet", "defaultCpuSet", "string", text),
)
_ENTRIES = Field("Entries", "entries", "map[string]map[string]string", mapping(mapping(text)), {})
_V1 = Form(1, (_NAME,), (*_HEAD, Field("Entries", "entries", "map[string]string", mapping(text), {})), may_lack=True)
_V2 = Form(2, (_NAME, f"{_NAME}V2"), (*_HEAD, _ENTRIES), may_lack=True)
_V3 = Form(
    3,
    (_NAME, f"{_NAME}V3"),
    (*_HEAD, _ENTRIES, Field("PodEntries", "podEntries", "state.PodCPUAssignments", mapping(_POD_ENTRY), {})),
)


def read_cpu_state(blob: bytes, source: str = FILE) -> KubeletCpus:
    """Read and verify a file. Raises CheckpointError, CorruptCheckpointError."""
    wrapped, document = decoded(blob, Wrapped, source)
    data = unwrapped(wrapped, source)
    content, _ = decoded(blob if data is None else data, _Content, source)
    _check_entries(content, data is None, source)
    try:
        version = 4 if data is not None else fitting(document, _forms(content), wrapped.checksum, source).version
        return _read(content, version)
    except BadListError as wrong:
        raise CheckpointError(source, wrong.message) from wrong


def to_start_from(read: KubeletCpus, source: str = FILE) -> CpuState:
    """The state, if one can go on with it. Raises StateError for one without pods, or with a CPU in two pods."""
    if read.version == 1 and read.state.assignments:
        raise StateError(
            f"{source}: format V1 names containers, not their pods",
            hint="let a kubelet of 1.18 or later rewrite it, or drain the node",
        )
    owners: dict[str, CpuSet] = {}
    for uid, containers in read.state.assignments.items():
        cpus = functools.reduce(operator.or_, containers.values(), 0)
        for other, held in owners.items():
            if both := cpus & held:
                raise StateError(
                    f"{source}: CPUs {format_list(both)} are assigned to pod {other} and to pod {uid}",
                    hint="delete one of the two pods, and let the kubelet write its state again",
                )
        owners[uid] = cpus
    return read.state


def _check_entries(content: _Content, may_be_v1: bool, source: str) -> None:
    """Containers go by pods, or in V1 by themselves."""
    alone = {isinstance(entry, str) for entry in (content.entries or {}).values()}
    if True in alone and (False in alone or content.pod_entries is not None or not may_be_v1):
        raise CheckpointError(source, "not a checkpoint of the kubelet: some entries name no pod")


def _forms(content: _Content) -> tuple[Form, ...]:
    if content.pod_entries is not None:
        return (_V3,)
    if any(isinstance(entry, str) for entry in (content.entries or {}).values()):
        return (_V1,)
    return (_V2, _V3, _V1)  # without pods, all of them look alike


def _read(content: _Content, version: int) -> KubeletCpus:
    entries: Mapping[str, Any] = content.entries or {}
    if version == 1:
        entries = {"": entries} if entries else {}
    return KubeletCpus(
        version=version,
        policy=content.policy_name,
        state=CpuState(parse_list(content.default_cpu_set), _parsed(entries)),
        pods={uid: parse_list(entry.cpus) for uid, entry in (content.pod_entries or {}).items()},
        before_resize=_parsed(
            {
                uid: {name: each.baseline for name, each in containers.items()}
                for uid, containers in (content.baselines or {}).items()
            }
        ),
    )


def _parsed(entries: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, CpuSet]]:
    return {uid: {name: parse_list(cpus) for name, cpus in containers.items()} for uid, containers in entries.items()}
