"""A node dies and comes back: taints, eviction, replacement. Run it: python examples/05_node_failure.py"""

from __future__ import annotations

import asyncio

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import EVENT, NODE, POD
from bayplan.model.clock import rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.testing import deployment, fake_cluster, node, until

UNREACHABLE = "node.kubernetes.io/unreachable"
WEB = (
    deployment("web")
    .replicas(2)
    .requests(cpu=3)  # of a node's 4: one pod a node
    .tolerates(UNREACHABLE, effect="NoExecute", seconds=30)  # 300 if nothing is said
)


async def main() -> None:
    cluster = fake_cluster(node("n1"), node("n2"), node("n3"), WEB, seed=5)
    await until(cluster, WEB, lambda it: it.status.ready_replicas == 2)
    start = cluster.clock.now()
    print(f"seconds   {'nodes':36} pods of web")

    shown = ""
    for second in range(0, 361, 5):
        if second == 20:
            await set_kubelet(cluster, "n1", f"stopped-at={rfc3339(cluster.clock.now())}")
        if second == 240:
            await set_kubelet(cluster, "n1", None)
        picture = f"{await nodes(cluster):36} {await pods(cluster)}"
        if picture != shown:
            print(f"{(cluster.clock.now() - start) // 1_000_000:7}   {picture}")
        shown = picture
        await cluster.advance(5)

    print("\nwhat was told about n1")
    for item in (await cluster.list(EVENT, fields="involvedObject.name=n1")).items:
        event = item.doc()
        print(f"  {event['type']:8} {event['reason']:22} {event['message']}")


async def set_kubelet(cluster: EmbeddedCluster, name: str, state: str | None) -> None:
    """An annotation stops a node's kubelet; without it the kubelet is back."""
    await cluster.patch(NODE, {"metadata": {"annotations": {"bayplan.dev/kubelet": state}}}, name)


async def nodes(cluster: EmbeddedCluster) -> str:
    words = []
    for item in (await cluster.list(NODE)).items:
        seen = item.view(Node)
        ready = condition(seen.status.conditions, "Ready")
        state = {"True": "up", "Unknown": "lost"}.get(ready.status if ready else "", "down")
        words.append(f"{item.name} {state}{' tainted' if seen.spec.taints else ''}")
    return ", ".join(words)


async def pods(cluster: EmbeddedCluster) -> str:
    words = []
    for item in (await cluster.list(POD, "default", labels="app=web")).items:
        seen = item.view(Pod)
        ready = condition(seen.status.conditions, "Ready")
        state = "ready" if ready is not None and ready.status == "True" else "not ready"
        if seen.metadata.deletion_timestamp is not None:
            state = "going"
        words.append(f"{seen.spec.node_name or 'nowhere'} {state}")
    return ", ".join(sorted(words))


asyncio.run(main())
