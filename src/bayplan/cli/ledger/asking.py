"""Which ledger a command asks: --database and --cluster, and what time it is in there."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bayplan.cli.ledger.run import database_option
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from bayplan.cli.invocation import Invocation
    from bayplan.ledger.questions.asking import Present, Scope
    from bayplan.ledger.questions.windows import Window
    from bayplan.ledger.store.sql import SqlStore
    from bayplan.model.clock import Instant
    from bayplan.service.settings import LedgerSettings

T = TypeVar("T")
ALL = "all"


class Session:
    """An opened ledger."""

    def __init__(self, store: SqlStore, cluster: str | None, now: Instant, last: Mapping[str, Instant]) -> None:
        self.store = store
        self.cluster = cluster
        self.now = now
        self.last = last
        """The present of each cluster that is asked about; the latest of them is now."""
        self.several = len(last) > 1
        """Whether rows must say which cluster they are of."""

    def scope(self, namespace: str | None = None) -> Scope:
        """Whose rows are asked for."""
        from bayplan.ledger.questions.asking import Scope

        return Scope(self.cluster, namespace, self.last)

    def known_of(self, cluster: str, at: Instant) -> Instant:
        """As far as a cluster is known by a time: it may have been silent since before."""
        return self.scope().up_to(cluster, at)

    def at(self, text: str | None, flag: str = "--at") -> Instant:
        """The time that a flag names; now, if it is not given. What lies ahead is not known: it is now as well."""
        from bayplan.cli.ledger.times import parse_time, read_time

        return self.now if text is None else min(read_time(parse_time, text, self.now, flag), self.now)

    def window(self, since: str, until: str | None, step: int | None) -> Window:
        """What --since, --until and --step say. Raises WindowError."""
        from bayplan.cli.ledger.times import read_time, since_or_span
        from bayplan.ledger.questions.windows import Window

        end = self.at(until, "--until")
        return Window(read_time(since_or_span, since, end, "--since"), end, step)


class Ledger:
    """What the command line says of the ledger. Nothing is read before it is needed."""

    def __init__(self, invocation: Invocation, cluster: str | None) -> None:
        self._invocation = invocation
        self.cluster = None if cluster in (None, ALL) else cluster

    @property
    def settings(self) -> LedgerSettings:
        """The section `ledger` of the settings. Raises SettingsError."""
        return self._invocation.settings().settings.ledger

    def is_default(self, name: str) -> bool:
        """Whether nobody has set a setting of the section. Raises SettingsError."""
        return self._invocation.settings().origins[f"ledger.{name}"] == "default"

    @property
    def url(self) -> str:
        """Of its database. Raises SettingsError."""
        from bayplan.ledger.settings import database_url

        return database_url(self.settings)

    async def open(self) -> SqlStore:
        """Its store, to ask. Raises SettingsError, and as `open_ledger`."""
        from bayplan.ledger.questions.asking import open_ledger
        from bayplan.ledger.settings import store_settings

        return await open_ledger(self.url, store_settings(self.settings))

    def run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Open the ledger, do the work, close it."""
        import asyncio

        return asyncio.run(self._run(work))

    async def _run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        from bayplan.ledger.questions.asking import Scope, presents, require_cluster
        from bayplan.model.clock import SystemClock

        store = await self.open()
        try:
            if self.cluster is not None:
                await require_cluster(store, self.cluster)
            clock = SystemClock().now()
            times = await presents(store, clock, Scope(self.cluster))
            now = max((each.now for each in times.values()), default=clock)
            _tell_of_silence(times, now)
            last = {name: each.now for name, each in times.items()}
            return await work(Session(store, self.cluster, now, last))
        finally:
            await store.close()


def _tell_of_silence(times: Mapping[str, Present], now: Instant) -> None:
    """Say which last word is taken as the present, and which clusters fell silent before it."""
    from bayplan.ledger.questions.asking import SILENCE
    from bayplan.model.clock import rfc3339

    if any(each.silent and each.now == now for each in times.values()):
        tell(f"the ledger's last word is from {rfc3339(now)}: that is taken as the present")
    for name, each in times.items():
        if each.silent and now - each.now > SILENCE:
            tell(f"{name}: its last word is from {rfc3339(each.now)}, and nothing counts after that")


def on_ledger(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the flags --database and --cluster, and hand it a `ledger` made of them."""

    @functools.wraps(verb)
    def wrapped(*args: Any, cluster: str | None, **others: Any) -> Any:
        return verb(*args, ledger=Ledger(click.get_current_context().obj, cluster), **others)

    click.option("--cluster", metavar="NAME|all", help="One cluster of the ledger, not all.")(wrapped)
    return cast("Callable[..., Any]", database_option(wrapped))
