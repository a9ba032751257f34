"""A KubeletConfiguration in a file, for every command that takes one: `--kubelet-config`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.node.configuration import NodeConfiguration


def read_kubelet_file(path: Path, arguments: Sequence[str] = ()) -> NodeConfiguration:
    """The settings; faults of the file name its lines. Raises NodeConfigurationError, FileError, OSError."""
    from bayplan.model.faults import Fault
    from bayplan.node.configuration import NodeConfigurationError, read_configuration
    from bayplan.service.yaml_lines import read_yaml

    located = read_yaml(str(path), path.read_bytes())
    try:
        return read_configuration(located.value, arguments, str(path))
    except NodeConfigurationError as error:
        raise NodeConfigurationError(
            [
                each if each.path.startswith("--") else Fault("", located.fault(each.path, each.message))
                for each in error.faults
            ]
        ) from error
