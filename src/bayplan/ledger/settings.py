"""The section `ledger` of the settings, as its parts want it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from bayplan.cluster.leases import LeaseTimes
from bayplan.cluster.live.reflector_core import Policy
from bayplan.ledger.differ.gpus import INSTANCE_TYPE, VENDORS, GpuVendor, GpuVendors
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.listeners import Timing
from bayplan.ledger.store.settings import Address, Dialect, StoreSettings, Tls
from bayplan.model.clock import seconds
from bayplan.model.errors import PermanentError
from bayplan.service.settings import LedgerSettings
from bayplan.service.state import state_folder

_LONGEST_PAUSE = 10.0
_SPANS = ("connect_timeout", "statement_timeout", "request_timeout", "watch_stall")


class NoTimeError(PermanentError):
    """A time-out of no time at all: to some databases it means without end, to others at once."""

    code = "BP-D070"


def database_url(settings: LedgerSettings) -> str:
    """Where the ledger is: as set, or a file in the state folder."""
    return f"sqlite:///{state_folder() / 'ledger.db'}" if settings.database == "auto" else settings.database


def spool_path(settings: LedgerSettings, cluster: str, address: Address) -> Path:
    """Where batches of a cluster wait while its database is away: another database has another file."""
    folder = state_folder() / "spool" if settings.spool == "auto" else Path(settings.spool)
    url = address.url
    place = str(address.path.resolve()) if address.dialect is Dialect.SQLITE else url.database
    words = (address.dialect.value, url.host, url.port, place, sorted(url.query.items()))
    return folder / f"{cluster}-{hashlib.blake2b(repr(words).encode(), digest_size=4).hexdigest()}.spool"


def store_settings(settings: LedgerSettings) -> StoreSettings:
    """How to speak to the database. Raises NoTimeError for this and every other time that must not be nothing."""
    for name in _SPANS:
        if not getattr(settings, name).micros:
            raise NoTimeError(f"ledger.{name}: expected more than 0s", hint="leave it out for its default")
    return StoreSettings(
        pool_size=settings.pool_size,
        connect_timeout=settings.connect_timeout.seconds,
        statement_timeout=settings.statement_timeout.seconds,
        tls=Tls(settings.tls),
        tls_authority="" if settings.tls_authority == "system" else settings.tls_authority,
    )


def gpu_vendors(settings: LedgerSettings) -> GpuVendors:
    """Which resources are GPUs: those of known vendors, and those that are set. Their model is their machine's."""
    further = settings.gpu_resources.patterns
    return GpuVendors((*VENDORS, GpuVendor("configured", further, (INSTANCE_TYPE,)))) if further else GpuVendors()


def user_rule(settings: LedgerSettings) -> UserRule:
    """Where a pod's user is written."""
    return UserRule(
        labels=() if settings.user_label == "none" else (settings.user_label,),
        annotations=() if settings.user_annotation == "none" else (settings.user_annotation,),
        creator=settings.user_creator == "on",
    )


def watch_policy(settings: LedgerSettings) -> Policy:
    """When a watch counts as dead, and how soon it is tried again: an API server that returns is heard within 30 s,
    though it refuses the first attempts."""
    return Policy(stall=settings.watch_stall.seconds, longest_pause=_LONGEST_PAUSE)


def listener_timing(settings: LedgerSettings) -> Timing:
    """A listener gives a sign at the latest after its stall time and its longest pause: only then is it dead."""
    usual = Timing()
    return msgspec.structs.replace(usual, silence=usual.silence + settings.watch_stall.micros - seconds(Policy().stall))


def lease_times(settings: LedgerSettings) -> LeaseTimes:
    """The times of the election."""
    return LeaseTimes(settings.lease_duration.micros, settings.lease_renew.micros, settings.lease_retry.micros)
