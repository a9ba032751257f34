"""The same work many times over, each in a process of its own, as many at a time as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_CONTEXT = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang


def in_processes(
    work: Callable[..., T],
    each: Sequence[tuple[Any, ...]],
    processes: int,
    ended: Callable[[int], None] = lambda _: None,
) -> Iterator[T]:
    """What `work` returns for each of these arguments, in their order. `ended` is told of each as it is handed over.

    Work and arguments must be such that another process can be told of them. One process is this one.
    """
    if processes == 1 or len(each) == 1:
        for arguments in each:
            yield work(*arguments)
            ended(1)
        return
    with ProcessPoolExecutor(min(processes, len(each)), mp_context=_CONTEXT) as pool:
        under_way = [pool.submit(work, *arguments) for arguments in each]
        try:
            for one in under_way:
                yield one.result()
                ended(1)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
