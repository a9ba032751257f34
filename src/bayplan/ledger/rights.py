"""What a ledger must be allowed to do in a cluster: one table, from which roles, the doctor and the documents follow.

A line holds where its setting says so; a place or name in braces is the setting of that name. Owners may be of any
kind: by default those that every cluster has and those whose status is known by rules may be read. A kind that may not
be read costs the ledger that kind's listener, nothing else: the doctor names it, and `manifest --owners` adds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from bayplan.ledger.kubelet_service import NAME as KUBELETS
from bayplan.ledger.kubelet_service import NAMESPACE as KUBELETS_PLACE
from bayplan.ledger.status.kinds import RULES
from bayplan.service.settings import LedgerSettings

_FOLLOWED = "list watch"


class Need(NamedTuple):
    """A line of the table: verbs on a resource, what for, and when."""

    group: str
    resource: str
    verbs: str
    why: str
    when: str = ""
    """The setting that asks for it, `finalizers=on`; empty: always."""
    namespace: str = ""
    """Empty: in all namespaces."""
    name: str = ""
    """Empty: any."""

    @property
    def kind(self) -> str:
        """As a stream of the kind is named: `pods`, `jobs.batch`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def rights(self) -> list[Right]:
        """Verb by verb."""
        return [Right(self.group, self.resource, verb, self.namespace, self.name) for verb in self.verbs.split()]


class Right(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"
        return what + (f" {self.name}" if self.name else "") + (f" in {self.namespace}" if self.namespace else "")


class Owner(NamedTuple):
    """A kind of owners, as RBAC names it; `*` is any."""

    group: str
    resource: str


TABLE = (
    Need("", "pods", _FOLLOWED, "what is recorded"),
    Need("", "nodes", _FOLLOWED, "devices, their models, and the addresses of kubelets"),
    Need("", "events", _FOLLOWED, "who preempted or evicted whom, and which quota kept pods from being made"),
    Need("resource.k8s.io", "resourceclaims", _FOLLOWED, "devices that pods hold by claims"),
    Need("resource.k8s.io", "resourceslices", _FOLLOWED, "devices that nodes offer to claims"),
    Need("", "namespaces", "get", "its uid is the cluster's name", "cluster=auto", name="kube-system"),
    Need("", "pods", "patch", "the finalizer is put on and taken off", "finalizers=on"),
    Need(
        "coordination.k8s.io",
        "leases",
        "get update",
        "replicas elect a leader",
        "election=on",
        "{lease_namespace}",
        "{lease_name}",
    ),
    Need("coordination.k8s.io", "leases", "create", "the first of them makes it", "election=on", "{lease_namespace}"),
    Need("", "services", "get update", "the Service with all kubelets", "kubelet_service=on", KUBELETS_PLACE, KUBELETS),
    Need("", "services", "create", "it is made once", "kubelet_service=on", KUBELETS_PLACE),
    Need(
        "discovery.k8s.io",
        "endpointslices",
        "list create update get delete",
        "the kubelets' addresses",
        "kubelet_service=on",
        KUBELETS_PLACE,
    ),
)
"""But for owners. RBAC does not know an object's name when it is made, hence lines of their own for `create`.
A slice is read once more when it is deleted."""

OF_OWNERS = (
    Need("GROUP", "RESOURCE", _FOLLOWED, "whose a pod is, and what became of it"),
    Need("GROUP", "RESOURCE", "get patch", "the finalizer of those at the top of a chain", "finalizers=on"),
)
"""Of each kind of owners."""

OWNERS = tuple(Owner(kind.group, f"{kind.kind.lower()}s") for kind in RULES)
"""Those that may be read by default: every kind whose status follows from rules."""


def needs(settings: LedgerSettings, owners: Iterable[Owner] = OWNERS) -> list[Need]:
    """What a ledger with these settings must be allowed to do."""
    places = {field: str(value) for field, value in msgspec.structs.asdict(settings).items()}
    lines = [
        line._replace(namespace=line.namespace.format_map(places), name=line.name.format_map(places))
        for line in TABLE
        if _holds(line.when, places)
    ]
    for owner in dict.fromkeys(owners):
        lines += [
            line._replace(group=owner.group, resource=owner.resource) for line in OF_OWNERS if _holds(line.when, places)
        ]
    return lines


def _holds(when: str, places: dict[str, str]) -> bool:
    setting, _, value = when.partition("=")
    return not when or places[setting] == value


def rules(lines: Sequence[Need], namespace: str = "") -> list[dict[str, Any]]:
    """The rules of the role for a namespace; empty: of the ClusterRole. Resources with the same verbs share one."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for line in lines:
        if line.namespace == namespace:
            verbs.setdefault((line.group, line.name, line.resource), []).extend(line.verbs.split())
    shared: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), allowed in verbs.items():
        shared.setdefault((group, name, tuple(dict.fromkeys(allowed))), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": [name]} if name else {}),
            "verbs": list(allowed),
        }
        for (group, name, allowed), resources in shared.items()
    ]


def places(lines: Sequence[Need]) -> list[str]:
    """The namespaces that need a Role of their own."""
    return list(dict.fromkeys(line.namespace for line in lines if line.namespace))
