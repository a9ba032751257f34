"""Names of containers without asking the runtime: the kubelet links their logs by name and id.

/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

LOGS = Path("/var/log/containers")

_LINK = re.compile(r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>.+)-(?P<id>[0-9a-f]{64})\.log")


class ContainerName(msgspec.Struct, frozen=True):
    """What people call a container."""

    namespace: str = ""
    pod: str = ""
    container: str = ""


def container_names(logs: Path = LOGS) -> dict[str, ContainerName]:
    """Names by container id; empty where there are no such links."""
    try:
        links = os.listdir(logs)
    except FileNotFoundError:
        return {}
    found = {}
    for link in links:
        if match := _LINK.fullmatch(link):
            found[match["id"]] = ContainerName(match["namespace"], match["pod"], match["container"])
    return found
