"""What a VM may ask of its place, and how a node may be: held against the API server's own rules before one is asked.

So a scenario that cannot be is refused while the one before it still stands, and with the words and the path that the
refusal of its pod would have. The rules are those of the embedded API server, which are upstream's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Errors
from bayplan.cluster.embedded.admission.metadata import validate_metadata
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.schema.decode import DecodeError, decode
from bayplan.cluster.embedded.schema.document import MalformedBodyError
from bayplan.cluster.embedded.schema.table import TABLE
from bayplan.cluster.kinds import POD, Kind
from bayplan.simulate.fault_kinds import Fault, FaultKind

MANAGED = "app.kubernetes.io/managed-by"
VM_LABEL = "vm.kubevirt.io/name"
DOMAIN = "kubevirt.io/domain"
OWN_LABELS = (MANAGED, VM_LABEL, DOMAIN)
"""By these a VM's pod is known: nobody else has a say in them."""
_OURS = "expected no such label: it says whose pod this is, and is set with the pod"
_UNKNOWN = re.compile(r'unknown field "(.*)"')
_WRONG = re.compile(r"json: cannot unmarshal (\w+) into Go struct field (?:Pod\.|Node\.)?(\S+)")
_PART = re.compile(r"^(spec|metadata)\.")
_CONTAINER = {"name": "compute", "image": "virt-launcher"}


def constraint_faults(labels: Mapping[str, str], spec: Mapping[str, Any]) -> list[Fault]:
    """What is wrong with labels and with parts of a pod's spec, by path: `labels.KEY`, `affinity.podAffinity`."""
    found = [Fault(f"labels.{key}", _OURS, FaultKind.VALUE) for key in OWN_LABELS if key in labels]
    asked = {name: value for name, value in spec.items() if value}
    if not labels and not asked:
        return found
    meta = {"name": "vm", "namespace": "default", "labels": labels}
    pod = {"metadata": meta, "spec": {**asked, "containers": [_CONTAINER]}}
    return [*found, *document_faults(POD, pod)]


def document_faults(kind: Kind, document: Mapping[str, Any]) -> tuple[Fault, ...]:
    """What an API server would say to a document, whatever else is there. Paths begin below `spec` and `metadata`."""
    try:
        return _document_faults(kind, msgspec.json.encode(document))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as odd:
        return (Fault("", f"expected what JSON can say: {odd}", FaultKind.VALUE),)


@lru_cache(maxsize=4096)
def _document_faults(kind: Kind, body: bytes) -> tuple[Fault, ...]:
    return tuple(each._replace(path=_PART.sub("", each.path)) for each in _look(kind, body))


def _look(kind: Kind, body: bytes) -> Iterator[Fault]:
    try:
        document, unknown = decode(TABLE.kinds[kind.name], body)
    except (DecodeError, MalformedBodyError) as wrong:
        match = _WRONG.fullmatch(str(wrong))
        path, message = (match[2], f"cannot be of type {match[1]}") if match else ("", str(wrong))
        yield Fault(path, message, FaultKind.VALUE)
        return
    for problem in unknown:
        match = _UNKNOWN.fullmatch(problem)
        yield Fault(match[1], "unknown key", FaultKind.UNKNOWN) if match else Fault("", problem, FaultKind.VALUE)
    strategy, errors = strategy_of(kind), Errors()
    strategy.default(document)
    strategy.prepare(document)
    validate_metadata(document, namespaced=kind.namespaced, name_rule=strategy.name_rule, errors=errors)
    strategy.validate(document, errors)
    for cause in dict.fromkeys(errors):
        yield Fault(cause.field, cause.message, FaultKind.OBJECT)
