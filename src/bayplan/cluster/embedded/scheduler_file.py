"""A scheduler configuration from a file: what is wrong with it is told with its line."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bayplan.scheduling.configuration import ConfigurationError, SchedulerConfiguration, read_configuration
from bayplan.service.yaml_lines import read_yaml


def load_configuration(path: Path) -> SchedulerConfiguration:
    """A KubeSchedulerConfiguration, YAML or JSON. Raises ConfigurationError, FileError for what is no YAML, OSError."""
    return parse_configuration(str(path), path.read_bytes())


def parse_configuration(name: str, text: str | bytes) -> SchedulerConfiguration:
    """A configuration from its text; `name` is what errors call it. Raises ConfigurationError, FileError."""
    document = read_yaml(name, text)
    try:
        return read_configuration(document.value, name)
    except ConfigurationError as error:
        located = [msgspec.structs.replace(fault, line=document.line(fault.path)) for fault in error.faults]
        raise ConfigurationError(sorted(located, key=lambda fault: fault.line), name) from error
