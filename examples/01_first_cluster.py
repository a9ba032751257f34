"""A first cluster: three nodes, a Deployment, and how it becomes ready. Run it: python examples/01_first_cluster.py

Time is virtual: the seconds on the left pass as fast as the machine can compute them.
"""

from __future__ import annotations

import asyncio

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import DEPLOYMENT, EVENT, NODE, POD
from bayplan.model.pods import Pod
from bayplan.model.workloads import Deployment

SECONDS = 6


def node(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "status": {"capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"}}}


WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "registry.example/web:1",
                        "resources": {"requests": {"cpu": "1"}},
                        "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 2},
                    }
                ]
            },
        },
    },
}


async def main() -> None:
    cluster = embedded_cluster(seed=1)
    for name in ("red", "green", "blue"):
        await cluster.create(NODE, node(name))
    stored = await cluster.create(DEPLOYMENT, WEB, "default")
    print("asked for 4 replicas; the API server added, among much else:")
    print("  strategy:", stored.doc()["spec"]["strategy"]["rollingUpdate"])

    print("\nseconds  ready")
    for second in range(1, SECONDS + 1):
        await cluster.advance(1)
        ready = (await cluster.get(DEPLOYMENT, "web", "default")).view(Deployment).status.ready_replicas
        print(f"{second:7}  {'#' * ready}{'.' * (4 - ready)}")

    print("\npods")
    for item in (await cluster.list(POD, "default", labels="app=web")).items:
        pod = item.view(Pod)
        print(f"  {item.name}  {pod.status.phase:8} on {pod.spec.node_name:6} {pod.status.pod_ip}")

    print("\nwhat happened, by count")
    counts: dict[str, int] = {}
    for event in (await cluster.list(EVENT, "default")).items:
        reason = event.doc()["reason"]
        counts[reason] = counts.get(reason, 0) + 1
    for reason, count in sorted(counts.items()):
        print(f"  {count:2} {reason}")


asyncio.run(main())
