"""Nodes that have a machine, for `bayplan up --empty`: what they say of it, and what they offer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bayplan.cli.cpu.kubelet_file import read_kubelet_file
from bayplan.cli.cpu.machine_option import chosen_machine, read_machine_text
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE, equip
from bayplan.node.machines import names
from bayplan.simulate.manifests import KUBELET_VERSION

Doc = dict[str, Any]


def machine_shape(machine: str, configuration: Path | None) -> Doc:
    """The shape of nodes with a machine, by name or file. Raises PermanentError of some kind, OSError."""
    said = {MACHINE: _checked(machine)}
    if configuration is not None:
        read_kubelet_file(configuration)  # its errors name the lines of the file
        said[CONFIGURATION] = configuration.read_text()
    equipment = equip(said[MACHINE], said.get(CONFIGURATION), str(configuration))
    return {
        "metadata": {"labels": {"kubernetes.io/os": "linux"}, "annotations": said},
        "status": {
            "capacity": dict(equipment.capacity),
            "allocatable": dict(equipment.allocatable),
            "nodeInfo": {"kubeletVersion": KUBELET_VERSION, "operatingSystem": "linux"},
        },
    }


def _checked(machine: str) -> str:
    """A machine's name, or the text of its file; errors name the lines of the file."""
    if machine == "-":
        text = sys.stdin.read()
        read_machine_text("standard input", text.encode())
        return text
    chosen_machine(machine)
    return machine if machine in names() else Path(machine).read_text()
