"""How often Python looks for reference cycles while much is done.

A simulation makes objects by the million and keeps most of them, a recording drops most of them soon; none of those is
part of a cycle, and what is dropped is freed at once, by counting. The usual pace, a look after every 700 new objects,
costs either of them a twelfth of its time and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 100_000
"""New objects between two looks: some tens of megabytes, if all of them were waste."""


@contextmanager
def seldom() -> Iterator[None]:
    """Look less often for as long as this lasts."""
    usual = gc.get_threshold()
    gc.set_threshold(max(_MANY, usual[0]), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
