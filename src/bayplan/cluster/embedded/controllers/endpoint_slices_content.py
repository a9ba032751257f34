"""What an EndpointSlice says of one pod: its address, whether it serves, and on which ports.

Source of truth: k8s.io/endpointslice, utils.go.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import Any

from bayplan.cluster.embedded.controllers.contract import View
from bayplan.cluster.embedded.controllers.readiness import is_ready
from bayplan.cluster.kinds import NODE
from bayplan.cluster.objects import Object
from bayplan.model.pods import Pod

HEADLESS = "service.kubernetes.io/headless"
_ZONE = "topology.kubernetes.io/zone"

Doc = dict[str, Any]


def is_headless(spec: Doc) -> bool:
    """Whether a Service has no address of its own."""
    return spec.get("clusterIP", "") in ("", "None")


def endpoint(service: Object, spec: Doc, item: Object, family: str, view: View) -> Doc:
    """A pod as an endpoint of a Service, in one family of addresses."""
    pod = item.view(Pod)
    serving, terminating = is_ready(pod), item.meta.deletion_timestamp is not None
    ready = bool(spec.get("publishNotReadyAddresses")) or (serving and not terminating)
    node = view.get(NODE, "", pod.spec.node_name)
    zone = node.meta.labels.get(_ZONE, "") if node is not None else ""
    entry: Doc = {
        "addresses": _addresses(item, family),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }
    if pod.spec.hostname and pod.spec.subdomain == service.name:
        entry["hostname"] = pod.spec.hostname
    entry["targetRef"] = {"kind": "Pod", "namespace": item.namespace, "name": item.name, "uid": item.uid}
    if pod.spec.node_name:
        entry["nodeName"] = pod.spec.node_name
    if zone:
        entry["zone"] = zone
    return entry


def _addresses(item: Object, family: str) -> list[str]:
    section, first = item.sections["status"], item.view(Pod).status.pod_ip
    several = section.raw.count(b'"ip":"') != 1  # the usual pod has one address, and need not be read for it
    texts = [entry["ip"] for entry in section.plain().get("podIPs", ())] if several else [first]
    version = 6 if family == "IPv6" else 4
    return [str(address) for text in texts if (address := _address(text)).version == version]


@functools.lru_cache(maxsize=65536)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


def endpoint_ports(spec: Doc, pod: Pod) -> list[Doc]:
    """The ports of a Service as this pod has them; one that it does not name is left out."""
    ports = []
    for port in spec.get("ports", ()):
        number = _number(port, pod)
        if number is not None:
            entry = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            ports.append(entry | ({"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}))
    return ports


def _number(port: Doc, pod: Pod) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    containers = (*pod.spec.containers, *(one for one in pod.spec.init_containers if one.is_sidecar))
    for container in containers:
        for known in container.ports:
            if known.name == target and known.protocol == port.get("protocol", "TCP"):
                return known.container_port
    return None
