"""The monitor that the settings name, and its loop: what a process starts beside its recorder."""

from __future__ import annotations

from bayplan.ledger.outlet import Outlet
from bayplan.ledger.store.sql import SqlStore
from bayplan.ledger.use.exporters import Labels, Unit, UseSettingsError, usual_queries
from bayplan.ledger.use.metering import Meter, Metering, Plan
from bayplan.ledger.use.prometheus import Prometheus, Where
from bayplan.ledger.use.reading import Reading
from bayplan.model.clock import SECOND, Clock
from bayplan.service.settings import LedgerSettings


def plan_of(settings: LedgerSettings) -> Plan:
    """What is asked, and when. Raises UseSettingsError."""
    interval = settings.prometheus_interval
    if interval.micros < SECOND:
        raise UseSettingsError(f"ledger.prometheus_interval: expected at least 1s; got {interval}")
    use, memory = usual_queries(interval.micros // SECOND)
    return Plan(
        query=use if settings.use_query == "auto" else settings.use_query,
        memory_query={"auto": memory, "none": ""}.get(settings.use_memory_query, settings.use_memory_query),
        interval=interval.micros,
        reach=settings.prometheus_reach.micros,
        retention=settings.use_retention.micros,
    )


class Monitor:
    """The monitor of a process, over all of its reigns."""

    def __init__(self, settings: LedgerSettings) -> None:
        """Raises UseSettingsError."""
        self.meter = Meter()
        self._settings = settings
        self._plan = plan_of(settings)
        self._labels = Labels.parse(settings.use_labels)
        self._prometheus = Prometheus(
            Where(
                settings.prometheus,
                "" if settings.prometheus_bearer == "none" else settings.prometheus_bearer,
                "" if settings.prometheus_authority == "system" else settings.prometheus_authority,
            )
        )

    async def run(self, cluster: str, store: SqlStore, outlet: Outlet, clock: Clock) -> None:
        """One reign's loop, until cancelled."""
        unit: Unit = "ratio" if self._settings.use_query == "auto" else self._settings.use_unit
        reading = Reading(cluster, self._labels, unit)
        await Metering(
            self._prometheus, store, outlet, reading=reading, plan=self._plan, clock=clock, meter=self.meter
        ).run()

    async def close(self) -> None:
        """Close all connections."""
        await self._prometheus.close()


def monitor_of(settings: LedgerSettings) -> Monitor | None:
    """None where no Prometheus is named. Raises UseSettingsError."""
    return None if settings.prometheus == "none" else Monitor(settings)
