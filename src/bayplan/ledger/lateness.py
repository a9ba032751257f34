"""How far the story that a stream tells lies behind what happens: whoever reads late cannot say when it was.

A reflector says up to which revision it missed the moment (`Batch.behind`). While that is caught up with more happens,
and a slow database lets what is read wait. So whenever a second may have been lost this asks for the server's revision:
what comes up to that is told as not seen, and so on until a round takes less than a second. While the server does not
say, all that comes is told so, and it is asked again after each batch.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.live.reflector import Batch
from bayplan.cluster.objects import version_of
from bayplan.model.clock import SECOND, Instant

_LATE = SECOND
_NOTHING_TO_READ = SECOND // 4
"""Whoever waits longer for news has read all; less may be our own work, and more of it where there is a backlog."""


class Lateness(msgspec.Struct):
    """Of one stream. Each batch is `marked` as it comes, and then `handed_on`."""

    behind: int = 0
    """What happened up to this revision is told late."""
    since: Instant = Instant(0)
    """When that was the server's revision, or all was read since."""
    held: int = 0
    """How long batches could not be handed on since all was read."""
    unanswered: bool = False
    """The server did not say its revision when it was asked."""
    came_at: Instant = Instant(0)
    ready_at: Instant = Instant(0)

    def marked(self, batch: Batch, now: Instant) -> Batch:
        """The batch, with what it brings late."""
        if now - self.ready_at > (_LATE if self.behind else _NOTHING_TO_READ):
            self.held, self.since = 0, now
        self.came_at = now
        if batch.behind > self.behind:
            self.behind, self.since = batch.behind, now
        if self.unanswered:  # it may be further than what this batch tells
            self.behind = max(self.behind, version_of(batch.revision) + 1)
        return msgspec.structs.replace(batch, behind=self.behind) if self.behind > batch.behind else batch

    def handed_on(self, batch: Batch, now: Instant) -> bool:
        """Whether more may be late: then `is_behind` is to be told the server's revision."""
        self.held += now - self.came_at
        self.ready_at = now
        caught_up = 0 < self.behind <= version_of(batch.revision)
        if caught_up:
            self.behind = 0
        return self.unanswered or self.held > _LATE or (caught_up and now - self.since > _LATE)

    def is_behind(self, revision: int | None, now: Instant) -> None:
        """The server's revision, asked for at `now`; None: it did not say."""
        self.unanswered = revision is None
        if revision is not None:
            self.behind, self.since, self.held = revision, now, 0
