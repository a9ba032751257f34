"""Addresses of pods and nodes, found from what is stored: a hash says where to look, the neighbours what is taken."""

from __future__ import annotations

import zlib
from collections.abc import Collection

from bayplan.cluster.embedded.kubelet.run import Doc
from bayplan.model.nodes import Node

_HOSTS = 253  # of a /24, without network, gateway and broadcast


def host_ip(node: Node) -> str:
    """The node's address; empty when it has none."""
    return next((each.address for each in node.status.addresses if each.type == "InternalIP"), "")


def node_addresses(name: str) -> list[Doc]:
    """What a node that came without addresses is reached by."""
    number = zlib.crc32(name.encode())
    ip = f"172.18.{number >> 8 & 255}.{number % _HOSTS + 2}"
    return [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}]


def pod_ip(node: Node, uid: str, taken: Collection[str]) -> str:
    """A free address of the node's range: its podCIDR, else one of 10.244.0.0/16 by its name.

    When all 253 are taken the range is too small for the node's pods, and addresses repeat.
    """
    cidr = node.spec.pod_cidr
    network = (
        cidr.rpartition(".")[0] if cidr.endswith(".0/24") else f"10.244.{zlib.crc32(node.metadata.name.encode()) & 255}"
    )
    first = zlib.crc32(uid.encode())
    for step in range(_HOSTS):
        address = f"{network}.{(first + step) % _HOSTS + 2}"
        if address not in taken:
            break
    return address
