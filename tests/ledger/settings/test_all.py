"""No setting without an effect that somebody has seen."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.ledger.settings import NoTimeError, store_settings
from bayplan.service.settings import LedgerSettings
from tests.ledger.settings import (
    test_database,
    test_election,
    test_gpu_resources,
    test_measurements,
    test_process,
    test_recording,
)
from tests.ledger.settings.effects import SEEN, given

MODULES = (test_database, test_election, test_gpu_resources, test_measurements, test_process, test_recording)


def test_every_setting_is_changed_in_a_test_that_sees_the_effect() -> None:
    settings = {f"ledger.{field.name}" for field in msgspec.structs.fields(LedgerSettings)} | {"log.levels"}
    assert set(SEEN) == settings
    tests = {name for module in MODULES for name in vars(module) if name.startswith("test_")}
    assert {test for names in SEEN.values() for test in names} <= tests


@pytest.mark.parametrize("name", ["connect_timeout", "statement_timeout", "request_timeout", "watch_stall"])
def test_a_time_out_of_no_time_is_refused(name: str) -> None:
    with pytest.raises(NoTimeError, match=f"ledger.{name}: expected more than 0s"):
        store_settings(given(**{name: "0s"}).ledger)
