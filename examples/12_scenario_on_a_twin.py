"""A storm rehearsed on the copy of a cluster. Run it: python examples/12_scenario_on_a_twin.py

Here the cluster is an embedded one. On a cluster of yours `bayplan twin from -o prod.twin` takes the copy, and
`bayplan simulate run storm.yaml --twin prod.twin` does the rest; docs/twin.md tells more.
"""

from __future__ import annotations

import asyncio

from bayplan.cluster.kinds import POD
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.scenario_ground import ground_of
from bayplan.simulate.summary import text
from bayplan.simulate.twin.snapshot import read_cluster
from bayplan.testing import deployment, fake_cluster, node

STORM = """\
duration: 1h
nodes:
  - {name: spare, count: 0, capacity: {cpu: 16, memory: 64Gi}}
events:
  - {name: storm, at: 5m, do: {fail: {labels: {zone: a}}}}
  - {name: rush, at: 10m, do: {scale: {workload: default/web, replicas: 12}}}
  - {name: help, when: {pending: {above: 2}, for: 5m}, do: {addNodes: {group: spare, count: 1}}}
"""


async def main() -> None:
    cluster = fake_cluster(
        *(node(f"n{number}").offers(cpu=8, memory="32Gi").labelled(zone="ab"[number % 2]) for number in range(4)),
        deployment("web").replicas(8).requests(cpu=2),
    )
    await cluster.advance(30)

    twin = await read_cluster(cluster, "my cluster", cluster.clock.now())
    storm = parse_scenario("storm.yaml", STORM, ground_of(twin))
    summary = await rehearse(Order(scenario=storm, name="storm", seed=1, duration=storm.duration.micros, twin=twin))
    print("\n".join(text(summary)))

    print("the cluster itself still has", len((await cluster.list(POD)).items), "pods")


if __name__ == "__main__":
    asyncio.run(main())
