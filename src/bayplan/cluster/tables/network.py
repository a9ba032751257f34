"""The columns of services and of the endpoints behind them."""

from __future__ import annotations

from bayplan.cluster.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Columns,
    Doc,
    at,
    field,
    labels_at,
    shortened,
)
from bayplan.model.ages import UNKNOWN
from bayplan.model.clock import Instant

_MOST = 3


def _cluster_ip(service: Doc, _now: Instant) -> str:
    addresses = at(service, "spec.clusterIPs") or [NONE]
    return str(addresses[0])


def _external(service: Doc, _now: Instant) -> str:
    fixed: list[str] = at(service, "spec.externalIPs") or []
    match at(service, "spec.type"):
        case "ClusterIP" | "NodePort":
            return ",".join(fixed) or NONE
        case "LoadBalancer":
            entries = at(service, "status.loadBalancer.ingress") or ()
            given = {each.get("ip") or each.get("hostname") or "" for each in entries} - {""}
            return ",".join([*sorted(given), *fixed]) or "<pending>"
        case "ExternalName":
            return at(service, "spec.externalName") or ""
    return UNKNOWN


def _ports(service: Doc, _now: Instant) -> str:
    return ",".join(map(_port, at(service, "spec.ports") or ())) or NONE


def _port(port: Doc) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{outside}/{port.get('protocol', '')}"


def _slice_ports(endpoints: Doc, _now: Instant) -> str:
    ports = at(endpoints, "ports") or ()
    texts = [str(number) if (number := each.get("port")) is not None else each.get("name", "*") for each in ports]
    return shortened(texts, _MOST) or UNSET


def _slice_endpoints(endpoints: Doc, _now: Instant) -> str:
    entries = at(endpoints, "endpoints") or ()
    return shortened([address for each in entries for address in each.get("addresses") or ()], _MOST) or UNSET


SERVICE: Columns = (
    NAME,
    Column("Type", field("spec.type")),
    Column("Cluster-IP", _cluster_ip),
    Column("External-IP", _external),
    Column("Port(s)", _ports),
    AGE,
    Column("Selector", labels_at("spec.selector"), priority=1),
)

ENDPOINT_SLICE: Columns = (
    NAME,
    Column("AddressType", field("addressType")),
    Column("Ports", _slice_ports),
    Column("Endpoints", _slice_endpoints),
    AGE,
)
