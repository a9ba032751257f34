"""A Service with every kubelet behind it, so that monitors find them: the node reconciler's second duty.

`plan` is pure: nodes and what there is in, writes out; nothing to write when nothing changed. The Service is headless
and has no selector; its EndpointSlices are ours, at most a thousand addresses each, one family each. A node stays in
the slice where it is: one that comes or goes changes one slice, not all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Literal

import msgspec

from bayplan.cluster.kinds import ENDPOINT_SLICE, NODE, SERVICE, Kind
from bayplan.cluster.objects import Object
from bayplan.cluster.paging import all_of
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import AlreadyExists, BayplanError, Conflict, NotFound
from bayplan.model.nodes import Node
from bayplan.service.logging import get_logger

log = get_logger(__name__)

NAMESPACE = "kube-system"
NAME = "bayplan-kubelets"
PORTS = {10250: "https-metrics", 10255: "http-metrics", 4194: "cadvisor"}
"""What kubelets serve, by port. Those of today serve the first alone; the others once were theirs."""
CURRENT = (10250,)
EVERY = 30 * SECOND
_MOST = 1000
"""Addresses of one slice: the API server takes no more."""
_OURS = {"kubernetes.io/service-name": NAME, "endpointslice.kubernetes.io/managed-by": "bayplan-ledger"}
_SELECTOR = ",".join(f"{key}={value}" for key, value in _OURS.items())
_MADE_BY = {"app.kubernetes.io/managed-by": "bayplan-ledger"}
"""The mark of a Service that is ours."""

Family = Literal["IPv4", "IPv6"]
Port = dict[str, Any]
"""As a slice lists it."""


class Write(msgspec.Struct, frozen=True):
    """One write: without a document, a deletion; with a version, an update of that version."""

    kind: Kind
    name: str
    document: dict[str, Any] | None
    version: str = ""


class Address(msgspec.Struct, frozen=True, order=True):
    """A kubelet's address of one family."""

    node: str
    address: str
    ready: bool


def addresses(nodes: Iterable[Node]) -> dict[Family, dict[str, Address]]:
    """Of each node, its first internal address of each family, by node."""
    found: dict[Family, dict[str, Address]] = {"IPv4": {}, "IPv6": {}}
    for node in nodes:
        ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
        for each in node.status.addresses:
            address = _reachable(each.address) if each.type == "InternalIP" else None
            if address is not None:
                family: Family = "IPv6" if address.version == 6 else "IPv4"
                name = node.metadata.name
                found[family].setdefault(name, Address(name, str(address), ready))
    return found


def _reachable(text: str) -> IPv4Address | IPv6Address | None:
    """An address that a slice may have, to be written in its one form; the API server refuses whole slices for one."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    local = found.is_loopback or found.is_link_local or found.is_unspecified
    mapped = isinstance(found, IPv6Address) and (found.ipv4_mapped is not None or found.scope_id is not None)
    return None if local or mapped else found


def plan(
    nodes: Iterable[Node], service: Object | None, slices: Sequence[Object], ports: Sequence[int] = CURRENT
) -> list[Write]:
    """What must be written so that the Service and its slices are as the nodes are. Calling it again gives nothing."""
    named = [{"name": PORTS.get(port, f"port-{port}"), "port": port, "protocol": "TCP"} for port in ports]
    return [*_service(service, named), *_slices(addresses(nodes), slices, named)]


def _service(found: Object | None, ports: list[Port]) -> list[Write]:
    wanted = [{**each, "targetPort": each["port"]} for each in ports]
    if found is not None:
        document = found.doc()
        if document["spec"].get("ports") == wanted:
            return []
        document["spec"]["ports"] = wanted
        return [Write(SERVICE, NAME, document, found.meta.resource_version)]
    labels = {"app.kubernetes.io/name": "kubelet", **_MADE_BY}
    return [
        Write(
            SERVICE,
            NAME,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
                "spec": {
                    "clusterIP": "None",
                    "ipFamilyPolicy": "PreferDualStack",
                    "ports": wanted,
                },
            },
        )
    ]


def _slices(wanted: dict[Family, dict[str, Address]], found: Sequence[Object], ports: list[Port]) -> list[Write]:
    writes: list[Write] = []
    left = {family: dict(each) for family, each in wanted.items()}
    kept: list[tuple[Object, dict[str, Any], Family, list[Address]]] = []
    for each in found:
        document = each.doc()
        family: Family = document["addressType"]
        names = [endpoint.get("nodeName", "") for endpoint in document.get("endpoints") or ()]
        stay = [left[family].pop(name) for name in names if name in left.get(family, {})]
        kept.append((each, document, family, stay))
    for each, document, family, stay in kept:
        fill = sorted(left[family])[: _MOST - len(stay)]
        stay += [left[family].pop(name) for name in fill]
        if not stay:
            writes.append(Write(ENDPOINT_SLICE, each.name, None))
            continue
        endpoints = [_endpoint(address) for address in stay]
        if document.get("endpoints") != endpoints or document.get("ports") != ports:
            document.update(endpoints=endpoints, ports=ports)
            writes.append(Write(ENDPOINT_SLICE, each.name, document, each.meta.resource_version))
    taken = {each.name for each in found}
    for family, rest in left.items():
        writes += _new_slices(family, sorted(rest.values()), ports, taken)
    return writes


def _new_slices(family: Family, rest: list[Address], ports: list[Port], taken: set[str]) -> list[Write]:
    writes = []
    free = (name for number in range(10_000) if (name := f"{NAME}-{family.lower()}-{number}") not in taken)
    for start in range(0, len(rest), _MOST):
        name = next(free)
        document = {
            "apiVersion": ENDPOINT_SLICE.api_version,
            "kind": ENDPOINT_SLICE.name,
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(_OURS)},
            "addressType": family,
            "endpoints": [_endpoint(each) for each in rest[start : start + _MOST]],
            "ports": ports,
        }
        writes.append(Write(ENDPOINT_SLICE, name, document))
    return writes


def _endpoint(each: Address) -> dict[str, Any]:
    return {
        "addresses": [each.address],
        "conditions": {"ready": each.ready},
        "nodeName": each.node,
        "targetRef": {"kind": "Node", "name": each.node},
    }


# --- the shell


async def keep_kubelet_service(cluster: Cluster, clock: Clock, ports: Sequence[int] = CURRENT) -> None:
    """Keep it as the nodes are, looking every 30 s, until cancelled. What fails is tried again at the next look."""
    while True:
        try:
            writes = await reconcile(cluster, ports)
            if writes:
                log.info("kubelet service reconciled", writes=writes)
        except BayplanError as error:
            log.warning("kubelet service not reconciled", why=error.message)
        await clock.sleep_until(Instant(clock.now() + EVERY))


async def reconcile(cluster: Cluster, ports: Sequence[int] = CURRENT) -> int:
    """One look; how many writes it took."""
    nodes = [each.view(Node) async for each in all_of(cluster, NODE)]
    slices = [each async for each in all_of(cluster, ENDPOINT_SLICE, NAMESPACE, labels=_SELECTOR)]
    try:
        service: Object | None = await cluster.get(SERVICE, NAME, NAMESPACE)
    except NotFound:
        service = None
    writes = plan(nodes, service, slices, ports)
    for write in writes:
        await _apply(cluster, write)
    return len(writes)


async def remove(cluster: Cluster) -> list[str]:
    """Take the Service and its slices away, as far as they bear our mark; which were, `Service NAMESPACE/NAME`."""
    found = [each async for each in all_of(cluster, ENDPOINT_SLICE, NAMESPACE, labels=_SELECTOR)]
    try:
        service = await cluster.get(SERVICE, NAME, NAMESPACE)
        if service.meta.labels.items() >= _MADE_BY.items():
            found.insert(0, service)
    except NotFound:
        pass
    gone = []
    for each in found:
        try:
            await cluster.delete(each.kind, each.name, NAMESPACE, uid=each.uid)
        except NotFound:  # with the Service before it
            continue
        gone.append(f"{each.kind.name} {NAMESPACE}/{each.name}")
    return gone


async def _apply(cluster: Cluster, write: Write) -> None:
    try:
        if write.document is None:
            await cluster.delete(write.kind, write.name, NAMESPACE)
        elif write.version:
            await cluster.update(write.kind, write.document, write.name, NAMESPACE)
        else:
            await cluster.create(write.kind, write.document, NAMESPACE)
    except (Conflict, AlreadyExists, NotFound) as error:  # somebody else wrote: the next look sees it
        log.debug("kubelet service changed meanwhile", name=write.name, why=error.message)
