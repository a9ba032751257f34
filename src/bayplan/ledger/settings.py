"""The section `ledger` of the settings, as its parts want it."""

from __future__ import annotations

from pathlib import Path

from bayplan.cluster.leases import LeaseTimes
from bayplan.ledger.differ.people import UserRule
from bayplan.ledger.store.settings import StoreSettings, Tls
from bayplan.service.settings import LedgerSettings
from bayplan.service.state import state_folder


def database_url(settings: LedgerSettings) -> str:
    """Where the ledger is: as set, or a file in the state folder."""
    return f"sqlite:///{state_folder() / 'ledger.db'}" if settings.database == "auto" else settings.database


def spool_folder(settings: LedgerSettings) -> Path:
    """Where batches wait while the database is away."""
    return state_folder() / "spool" if settings.spool == "auto" else Path(settings.spool)


def store_settings(settings: LedgerSettings) -> StoreSettings:
    """How to speak to the database."""
    return StoreSettings(
        pool_size=settings.pool_size,
        connect_timeout=settings.connect_timeout.seconds,
        statement_timeout=settings.statement_timeout.seconds,
        tls=Tls(settings.tls),
        tls_authority="" if settings.tls_authority == "system" else settings.tls_authority,
    )


def user_rule(settings: LedgerSettings) -> UserRule:
    """Where a pod's user is written."""
    return UserRule(
        labels=() if settings.user_label == "none" else (settings.user_label,),
        annotations=() if settings.user_annotation == "none" else (settings.user_annotation,),
        creator=settings.user_creator == "on",
    )


def lease_times(settings: LedgerSettings) -> LeaseTimes:
    """The times of the election."""
    return LeaseTimes(settings.lease_duration.micros, settings.lease_renew.micros, settings.lease_retry.micros)
