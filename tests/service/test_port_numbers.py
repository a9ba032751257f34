"""Ports as settings."""

from __future__ import annotations

import pytest

from bayplan.service.port_numbers import PortNumbers
from bayplan.service.sources import Given, load


@pytest.mark.parametrize(
    ("text", "numbers"), [("10250", (10250,)), ("10250, 10255,4194", (10250, 10255, 4194)), ("65535", (65535,))]
)
def test_ports_are_read(text: str, numbers: tuple[int, ...]) -> None:
    ports = PortNumbers.parse(text)
    assert ports == PortNumbers(*numbers)
    assert PortNumbers.parse(str(ports)) == ports


@pytest.mark.parametrize("text", ["", "0", "65536", "80,80", "80,", "-1", "https", "٨٠"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected ports from 1 to 65535, each once"):
        PortNumbers.parse(text)


def test_a_setting_of_ports() -> None:
    resolved = load(flags=[Given("ledger.kubelet_ports", "10250,10255", "--set")], env={})
    assert resolved.settings.ledger.kubelet_ports.numbers == (10250, 10255)
