"""Reading JSON that is not what it should be, as far as it can be read. Good JSON never comes here.

What stands in the way is left out, and said: one bad object must not hide those beside it, nor its own good parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What a decoder raises: also for bytes that are no UTF-8, and for nesting without end."""
_DEPTH = 10
"""How far down faults are looked for: a value of a term of a pod's affinity is the eighth."""
_MOST_FAULTS = 10
_NOTHING = object()


def loose(raw: bytes | msgspec.Raw) -> Any:
    """JSON as plain values, with U+FFFD for halves of characters and for bytes that are no UTF-8.

    Raises ValueError for what is no JSON at all.
    """
    try:
        return _whole(json.loads(bytes(raw).decode(errors="replace"), parse_int=_number, strict=False))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _number(text: str) -> int | float:
    """Of thousands of digits only about: Python makes no int of them."""
    return int(text) if len(text) < 4000 else float(text)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def salvaged(raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], where: str) -> tuple[T, list[str]]:
    """What of a JSON object fits a struct whose fields all have defaults, and what was left out, named from `where`.

    A null is not left out but not given: so Go reads it.
    """

    def fits(value: Any) -> bool:
        try:
            decoder.decode(msgspec.json.encode(value))
        except UNREADABLE:
            return False
        return True

    faults: list[str] = []
    try:
        value = _mended(_given(loose(raw)), fits, where, faults, _DEPTH)
    except (ValueError, RecursionError) as error:
        faults, value = [f"{where}: {error}"], _NOTHING
    return decoder.decode(msgspec.json.encode({} if value is _NOTHING else value)), faults


def _given(value: Any) -> Any:
    """Without nulls."""
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_given(item) for item in value if item is not None]
    return {} if value is None else value


def _at(key: str, fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda part: fits({key: part})


def _mended(value: Any, fits: Callable[[Any], bool], where: str, faults: list[str], depth: int) -> Any:
    """The parts of a value that fit, each tried where it stands."""
    if fits(value):
        return value
    if depth and isinstance(value, dict) and fits({}):
        parts = {key: _mended(item, _at(key, fits), f"{where}.{key}", faults, depth - 1) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part is not _NOTHING}
    if depth and isinstance(value, list) and fits([]):
        kept = [
            _mended(item, lambda it: fits([it]), f"{where}[{index}]", faults, depth - 1)
            for index, item in enumerate(value)
        ]
        return [part for part in kept if part is not _NOTHING]
    if len(faults) < _MOST_FAULTS:
        faults.append(f"{where:.100} cannot be {json.dumps(value):.60}")
    return _NOTHING
