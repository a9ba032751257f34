"""Numbers of a scenario that no machine could hold, or that could never come true, are refused with their place."""

from __future__ import annotations

import pytest

from bayplan.simulate.scenario_file import ScenarioError, parse_scenario

_GOOD = """\
nodes:
  - {name: host, count: 2, capacity: {cpu: 8, memory: 64Gi}}
teams: [{name: t}]
vms:
  - {name: web, namespace: t, count: 3, cpu: 1, memory: 1Gi}
events:
  - when: {cpu: {above: 0.9}, memory: {above: 0, below: 1}}
    do: {migrate: {vms: web-3}}
"""


def test_shares_and_the_last_vm_are_as_they_should_be() -> None:
    assert parse_scenario("x.yaml", _GOOD).events


@pytest.mark.parametrize(
    ("old", "new", "fault", "code"),
    [
        pytest.param("above: 0.9", "above: 90",
                     "7: events[0].when.cpu.above: expected a share of all nodes', 0 to 1, got 90", "X004",
                     id="percent"),
        pytest.param("below: 1}", "below: 1.5}",
                     "7: events[0].when.memory.below: expected a share of all nodes', 0 to 1, got 1.5", "X004",
                     id="more than all"),
        pytest.param("above: 0,", "above: -0.1,",
                     "7: events[0].when.memory.above: expected a share of all nodes', 0 to 1, got -0.1", "X004",
                     id="less than nothing"),
        pytest.param("above: 0.9", "above: .nan", "7: events[0].when.cpu.above: expected a share", "X004",
                     id="no number"),
        pytest.param("name: host, count: 2", "name: host, count: 100000000",
                     "2: nodes[0].count: expected int <= 1000000", "X004", id="too many nodes"),
        pytest.param("count: 3", "count: 1000000000",
                     "5: vms[0].count: expected int <= 1000000", "X004", id="too many VMs"),
        pytest.param("web-3", "web-4", '8: events[0].do.migrate.vms: expected VMs (web), got "web-4"', "X006",
                     id="a VM that is not there from the start"),
        pytest.param("web-3", "web-03", '8: events[0].do.migrate.vms: expected VMs (web), got "web-03"', "X006",
                     id="a VM by another spelling"),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_meant(old: str, new: str, fault: str, code: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("x.yaml", _GOOD.replace(old, new))
    assert f"x.yaml:{fault}" in refused.value.message
    assert f"BP-{code}" in [kind.value for kind in refused.value.kinds]
