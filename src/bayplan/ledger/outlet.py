"""Where batches go: into the database; while it is away, into the spool, and from there into the database, in order.

`put` returns once a batch is durable in either. As long as anything waits in the spool, later batches queue behind it.
Before every transaction it is asked whether this process may write at all: a leader that lost its lease must not.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bayplan.ledger.rows import Rows, StreamPosition
from bayplan.ledger.spool import Spool, SpoolFullError, SpoolUnwritableError
from bayplan.ledger.store.port import Store, StoreUnavailableError
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import TemporaryError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_FIRST_PAUSE = SECOND // 2
_LONGEST_PAUSE = 10 * SECOND


T = TypeVar("T")


class NotLeaderError(TemporaryError):
    """This process does not hold the lease (any more), so it writes nothing."""

    code = "BP-D032"


class Outlet:
    """The only way into the store. One `put` at a time; `run` and `commit` beside it."""

    def __init__(
        self, store: Store, spool: Spool | None, clock: Clock, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        """Without a spool, `put` waits for the database instead."""
        self.spool = spool
        self.rows = 0
        self.transactions = 0
        self.errors: Counter[str] = Counter()
        """By code."""
        self.away = False
        """The database did not take the last transaction."""
        self.told: dict[str, StreamPosition] = {}
        """How far each kind's story is told in the database, as far as this process knows."""
        self._store = store
        self._clock = clock
        self.may_write = may_write
        self._turn = asyncio.Lock()
        """One at a time at the spool's file."""
        self._waiting = asyncio.Event()

    async def put(self, rows: Rows) -> None:
        """Make a batch durable, however long it takes. Raises NotLeaderError, StoreRefusedError."""
        pause = _FIRST_PAUSE
        while not await self._taken(rows):
            await self._clock.sleep_until(Instant(self._clock.now() + pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def commit(self, rows: Rows) -> None:
        """Into the database or nowhere, for what can be asked for again. Raises as `put`, and StoreUnavailableError."""
        self._check()
        await self._store.commit(rows)
        self.transactions += 1
        self.rows += len(rows)
        self.told |= {row.kind: row for row in rows.by_type.get(StreamPosition, ()) if isinstance(row, StreamPosition)}

    async def _taken(self, rows: Rows) -> bool:
        if not self.spool and await self._commit(rows):  # a spool is false when it is empty
            return True
        if self.spool is None:
            return False
        self._check()
        try:
            async with self._turn:
                await _completed(asyncio.to_thread(self.spool.append, rows, self.told))
        except (SpoolFullError, SpoolUnwritableError) as error:
            self._failed(error)
            return False
        self._waiting.set()
        return True

    async def run(self) -> None:
        """Replay what waits whenever the database takes it, until cancelled. Raises as `put`."""
        if self.spool is None:
            return
        while True:
            if len(self.spool) == 0:
                self._waiting.clear()
                await self._waiting.wait()
            pause = _FIRST_PAUSE
            while not await self.replay():
                await self._clock.sleep_until(Instant(self._clock.now() + pause))
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def replay(self, *, positions: bool = True) -> bool:
        """Store what waits, in order; False: the database is still away. Raises as `put`.

        Without `positions` the database does not come to say that the story is told up to there.
        """
        spool = self.spool
        batches = 0
        while spool:
            async with self._turn:
                found = await _completed(asyncio.to_thread(spool.first))
                assert found is not None
                rows, upto = found
                if not positions:
                    rows.by_type.pop(StreamPosition, None)
                if not await self._commit(rows):
                    return False
                await _completed(asyncio.to_thread(spool.drop, upto))
                batches += 1
        if batches:
            log.info("spool replayed", batches=batches)
        return True

    async def _commit(self, rows: Rows) -> bool:
        try:
            await self.commit(rows)
        except StoreUnavailableError as error:
            self._failed(error)
            if not self.away:
                log.warning("database away", why=error.message, spools=self.spool is not None)
            self.away = True
            return False
        if self.away:
            log.info("database back")
        self.away = False
        log.debug("batch stored", rows=len(rows))
        return True

    def _check(self) -> None:
        if not self.may_write():
            raise NotLeaderError("the lease is lost: another process writes this ledger now")

    def _failed(self, error: TemporaryError) -> None:
        if not self.errors[error.code] or not isinstance(error, StoreUnavailableError):
            log.warning("cannot write", code=error.code, why=error.message)
        self.errors[error.code] += 1


async def _completed(work: Coroutine[Any, Any, T]) -> T:
    """The result of a thread's work. Nobody can stop a thread, so whoever is cancelled waits for it all the same: else
    it would go on at the spool's file while others use it, or after it is closed.
    """
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait((doing,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from doing.exception()
    return doing.result()
