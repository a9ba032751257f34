"""`--sort-by`: a path into an object, as `.spec.nodeName` or `{.status.containerStatuses[0].restartCount}`.

Of kubectl's JSONPath the part that people sort by: fields, quoted or escaped (`\\.`), and indexes. Objects that lack
the field come first; numbers and quantities sort as such, texts by the numbers in them too (`pod-2` before `pod-10`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from bayplan.model.quantity import NANOS, QuantityError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cluster.objects import Object

_STEP = re.compile(r"\.(?P<field>(?:\\.|[^.\[\]\\])+)|\[(?P<index>-?\d+)\]|\[['\"](?P<quoted>[^'\"]+)['\"]\]")
_NUMBER = re.compile(r"([0-9]+)")

Step = str | int


def read_path(text: str) -> list[Step]:
    """The steps of a path. Raises BadParameter."""
    path = text.strip().removeprefix("{").removesuffix("}")
    if not path.startswith((".", "[")):
        path = f".{path}"
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise click.BadParameter(f'expected a path such as .metadata.name; got "{text}"', param_hint="--sort-by")
        index, field = match["index"], match["field"] or match["quoted"]
        steps.append(int(index) if index is not None else re.sub(r"\\(.)", r"\1", field))
        at = match.end()
    return steps


def value_at(document: Any, steps: Sequence[Step]) -> Any:
    """What the steps lead to; None where they lead nowhere."""
    for step in steps:
        if isinstance(step, str) and isinstance(document, dict):
            document = document.get(step)
        elif isinstance(step, int) and isinstance(document, list) and -len(document) <= step < len(document):
            document = document[step]
        else:
            return None
    return document


def sort_key(value: Any) -> tuple[int, Any]:
    """A key by which values of any sort compare: nothing, then amounts, then texts."""
    if value is None:
        return 0, 0
    if isinstance(value, bool | int | float):
        return 1, value * NANOS
    try:
        return 1, parse(str(value)).nanos
    except QuantityError:
        return 2, [int(part) if _NUMBER.fullmatch(part) else part for part in _NUMBER.split(str(value))]


def sort_objects(items: list[Object], path: str) -> list[Object]:
    """The objects in the order of the values at a path."""
    steps = read_path(path)
    return sorted(items, key=lambda item: sort_key(value_at(item.doc(), steps)))
