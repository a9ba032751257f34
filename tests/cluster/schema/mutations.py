"""Recorded documents, and ways to spoil them: dropped, repeated and unknown keys, wrong types, nulls, odd spellings."""

from __future__ import annotations

import functools
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan.cluster.embedded.schema.document import Number, Pairs, read_json

_FILE = Path(__file__).parents[2] / "vectors" / "apiserver" / "admission.jsonl.gz"
_NUMBERS = (
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1e3",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "0.1",
    "1E-2",
)
_TEXTS = (
    "",
    "x",
    "100m",
    "1.50Gi",
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.6+02:00",
    "YQ==",
    "é",
    'say "hi"',
    "\\u",
    "5",
)


@functools.cache
def documents() -> list[tuple[str, str]]:
    """Kind and text of every object that a recorded create sent or got."""
    found: list[tuple[str, str]] = []
    with gzip.open(_FILE) as lines:
        for line in lines:
            case = json.loads(line)
            both = (case.get("object"), case["expected"].get("object")) if case["op"] == "create" else ()
            found += [(case["kind"], json.dumps(each)) for each in both if isinstance(each, dict)]
    return found


def spoilt(seed: int) -> tuple[str, bytes]:
    """Kind and body of a recorded document after up to three mutations, written in some odd way."""
    chance = random.Random(seed)
    kind, text = chance.choice(documents())
    tree = read_json(text.encode())
    for _ in range(chance.randint(0, 3)):
        spoil(tree, chance)
    return kind, write(tree, chance).encode()


def spoil(tree: Any, chance: random.Random) -> None:
    """One mutation somewhere in the tree."""
    if places := [*_places(tree)]:
        _mutate(chance.choice(places), chance)


def _places(tree: Any) -> Iterator[list[Any]]:
    """Every object and list of the tree that holds something."""
    if isinstance(tree, list) and tree:
        yield tree
        for item in tree:
            yield from _places(item[1] if isinstance(tree, Pairs) else item)


def _mutate(holder: list[Any], chance: random.Random) -> None:
    if not holder:
        return
    at = chance.randrange(len(holder))
    if not isinstance(holder, Pairs):
        holder[at] = _odd(holder[at], chance)
        return
    key, value = holder[at]
    sort = chance.randrange(6)
    if sort == 0:
        del holder[at]
    elif sort == 1:
        holder.insert(chance.randrange(len(holder) + 1), (key, value if chance.random() < 0.5 else _odd(value, chance)))
    elif sort == 2:
        holder.insert(at, (chance.choice((f"{key}x", key.upper(), "unknown")), value))
    elif sort == 3:
        holder += [(each, flag) for each, flag in holder if isinstance(flag, bool)]
    else:
        holder[at] = (key, _odd(value, chance))


def _odd(value: Any, chance: random.Random) -> Any:
    sort = chance.randrange(7)
    if sort == 0:
        return None
    if sort == 1:
        return Number(chance.choice(_NUMBERS))
    if sort == 2:
        return chance.choice(_TEXTS)
    if sort == 3:
        return chance.random() < 0.5
    return {4: [], 5: Pairs(), 6: [value]}[sort]


def write(tree: Any, chance: random.Random) -> str:
    """JSON text of a tree, with spaces and escapes as they come."""
    gap = chance.choice(("", "", "", " ", "\n\t"))
    if isinstance(tree, Pairs):
        members = (f"{gap}{_text(key, chance)}{gap}:{gap}{write(value, chance)}" for key, value in tree)
        return "{" + ",".join(members) + gap + "}"
    if isinstance(tree, list):
        return "[" + ",".join(gap + write(item, chance) for item in tree) + gap + "]"
    if isinstance(tree, Number):
        return str(tree)
    return _text(tree, chance) if isinstance(tree, str) else json.dumps(tree)


def _text(text: str, chance: random.Random) -> str:
    if text and chance.random() < 0.002:
        at = chance.randrange(len(text))
        escaped = json.dumps(text[at] if chance.random() < 0.9 else "\ud800")[1:-1]
        if len(escaped) == 1:
            escaped = f"\\u{ord(escaped):04x}"
        return json.dumps(text[:at])[:-1] + escaped + json.dumps(text[at + 1 :])[1:]
    return json.dumps(text, ensure_ascii=chance.random() < 0.05)
