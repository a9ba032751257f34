"""YAML that remembers where everything stood, so that a fault found later can still name its line.

A path is written as people and msgspec write it: `workloads[3].spec.template`, without the leading `$.`.

A few lines of YAML can stand for more than any machine holds: by aliases of aliases, by an alias of what it stands in,
by brackets in brackets. So a document is measured before anything is made of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from bayplan.model.errors import PermanentError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 100
"""Values in values, as they are with every alias written out. Objects of Kubernetes have about twenty."""
MOST_VALUES = 1_000_000
_MERGE = "tag:yaml.org,2002:merge"
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
    """Read one document. Raises FileError for what is no YAML, a key that stands twice, and what is beyond measure."""
    notes = _Notes(name)
    try:
        _not_too_deep(name, text)
        loader = yaml.CSafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is not None:
                _measure(name, root, {})
                notes.take(root)  # before anything is made of it: that writes merged keys out
            value = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        raise FileError(f"{name}:{mark.line + 1 if mark else 1}: not YAML: {broken.problem}") from broken
    except (yaml.YAMLError, ValueError) as broken:  # a day that no month has is a ValueError
        raise FileError(f"{name}: not YAML: {str(broken).splitlines()[0]}") from broken
    if notes.repeated:
        raise FileError("\n".join(notes.repeated.values()))
    return Located(name, value, notes.lines)


def _not_too_deep(name: str, text: str | bytes) -> None:
    """Raises FileError. The parser knows no bound, and what makes nodes of its events crashes at some ten thousand.

    Reading the events once more for it is an eighth of the time that a large file takes. A guess from the text whether
    it could be deep was no cheaper for a kubeconfig.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _too_deep(name, event.start_mark.line + 1 if event.start_mark else 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _too_deep(name: str, line: int) -> FileError:
    return FileError(f"{name}:{line}: values in values, more than {DEEPEST} deep")


def _measure(name: str, node: yaml.Node, known: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values a node stands for, and how deep. Each is measured once, however many aliases it has.

    Most nodes are scalars, of which nothing needs to be remembered: one value each, and nothing below.
    """
    if id(node) in known:
        found = known[id(node)]
        if found is None:  # it is being measured: we are inside it
            raise FileError(f"{name}:{_line(node)}: an alias in it refers to the whole, which never ends")
        return found
    known[id(node)] = None
    size, depth = 1, int(isinstance(node, yaml.CollectionNode))
    for each in _parts(node):
        if isinstance(each, yaml.ScalarNode):
            size += 1
        else:
            inner, below = _measure(name, each, known)
            size, depth = size + inner, max(depth, 1 + below)
    if size > MOST_VALUES:
        raise FileError(f"{name}:{_line(node)}: more than {MOST_VALUES} values, with its aliases written out")
    if depth > DEEPEST:
        raise _too_deep(name, _line(node))
    known[id(node)] = size, depth
    return size, depth


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


class _Notes:
    """The line of every path, and the keys that stand twice in one mapping."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, int] = {}
        self.repeated: dict[int, str] = {}
        """By node, so that aliases of one repeat nothing."""

    def take(self, node: yaml.Node, path: str = "", hidden: frozenset[str] = frozenset()) -> None:
        """All below a node. Keys that are hidden have another value there, as merged ones do."""
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path, hidden)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                below = f"{path}[{index}]"
                self.lines.setdefault(below, value.start_mark.line + 1)
                self.take(value, below)

    def _mapping(self, node: yaml.MappingNode, path: str, hidden: frozenset[str]) -> None:
        own: dict[str, int] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # refused when the document is made
            below, line = f"{path}.{key.value}" if path else key.value, key.start_mark.line + 1
            if key.value in own:
                told = f"{self.name}:{line}: {below}: expected once; it stands on line {own[key.value]} already"
                self.repeated.setdefault(id(key), told)
            own.setdefault(key.value, line)
            if key.tag == _MERGE:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif key.value not in hidden:
                self.lines.setdefault(below, line)
                self.take(value, below)
        for each in merged:
            self.take(each, path, hidden | own.keys())
