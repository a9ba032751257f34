"""YAML that remembers where everything stood, so that a fault found later can still name its line.

A path is written as people and msgspec write it: `workloads[3].spec.template`, without the leading `$.`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from bayplan.model.errors import PermanentError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAST_STEP = re.compile(r"(\.[^.\[\]]+|\[[^\]]*\]|^[^.\[\]]+)$")


class FileError(PermanentError):
    """A file cannot be used: `file:line: path: what was expected`, a line for each fault."""

    code = "BP-S004"


class Located:
    """A document and the line of each of its values."""

    def __init__(self, name: str, value: Any, lines: dict[str, int]) -> None:
        self.name = name
        self.value = value
        self._lines = lines

    def line(self, path: str) -> int:
        """The line of a path, or of the nearest thing around it that has one."""
        while path and path not in self._lines:
            path = _LAST_STEP.sub("", path)
        return self._lines.get(path, 1)

    def fault(self, path: str, message: str) -> str:
        """One line of a FileError."""
        where = f"{self.name}:{self.line(path)}: "
        return f"{where}{path}: {message}" if path else f"{where}{message}"


def read_yaml(name: str, text: str | bytes) -> Located:
    """Read one document. Raises FileError for what is no YAML and for a key that stands twice."""
    try:
        loader = yaml.CSafeLoader(text)
        try:
            root = loader.get_single_node()
            value = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        raise FileError(f"{name}:{mark.line + 1 if mark else 1}: not YAML: {broken.problem}") from broken
    except yaml.YAMLError as broken:
        raise FileError(f"{name}: not YAML: {str(broken).splitlines()[0]}") from broken
    lines: dict[str, int] = {}
    repeated = []
    for path, line in _walk(root, "") if root is not None else ():
        if path in lines:
            repeated.append(f"{name}:{line}: {path}: expected once; it stands on line {lines[path]} already")
        lines.setdefault(path, line)
    if repeated:
        raise FileError("\n".join(repeated))
    return Located(name, value, lines)


def _walk(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            yield from _walk(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            below = f"{path}[{index}]"
            yield below, value.start_mark.line + 1
            yield from _walk(value, below)
