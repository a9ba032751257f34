"""The order of a list after a strategic merge: the patch's order among its items, the server's among the others.

Source of truth: apimachinery pkg/util/strategicpatch/patch.go, normalizeElementOrder. Server-only items are put before
the first patch item that stood behind them on the server; an item the server did not know is behind nothing.
"""

from __future__ import annotations

from typing import Any

from bayplan.model.errors import ServerError


def _identity(item: Any, key: str) -> tuple[type, Any]:
    value = item.get(key) if key and isinstance(item, dict) else item
    return type(value), value


def place(item: Any, items: list[Any], key: str) -> int:
    """Where the item, or the first one with the same merge key, stands; -1 if nowhere."""
    wanted = _identity(item, key)
    return next((at for at, other in enumerate(items) if _identity(other, key) == wanted), -1)


def present(item: Any, items: list[Any], key: str) -> bool:
    """Whether one of the items has the same merge key, or for primitives the same value."""
    return place(item, items, key) >= 0


def in_order(merged: list[Any], patch_order: list[Any], server_order: list[Any], key: str) -> list[Any]:
    """The merged items in their final order. Raises ServerError where an item lacks its merge key."""
    for item in (*merged, *patch_order, *server_order) if key else ():
        if isinstance(item, dict) and key not in item:
            raise ServerError(f"map: map[...] does not contain declared merge key: {key}")
    ours = _sorted([item for item in merged if present(item, patch_order, key)], patch_order, key)
    theirs = _sorted([item for item in merged if not present(item, patch_order, key)], server_order, key)
    return _woven(theirs, ours, server_order, key)


def _sorted(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """An insertion sort, for upstream's comparison is no order: an item that the order does not know precedes all."""
    result: list[Any] = []
    for item in items:
        at = len(result)
        mine = place(item, order, key)
        while at > 0:
            other = place(result[at - 1], order, key)
            if mine >= 0 and other >= 0 and mine >= other:
                break
            at -= 1
        result.insert(at, item)
    return result


def _woven(left: list[Any], right: list[Any], server_order: list[Any], key: str) -> list[Any]:
    left, right = list(left), list(right)
    result: list[Any] = []
    while left and right:
        mine, other = place(left[0], server_order, key), place(right[0], server_order, key)
        result.append(left.pop(0) if 0 <= mine < other else right.pop(0))
    return [*result, *left, *right]
