"""A watch, four ways to patch, and the rolling update that follows. Run it: python examples/02_watch_and_patch.py"""

from __future__ import annotations

import asyncio

from bayplan.cluster.kinds import DEPLOYMENT, POD
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.errors import Conflict
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from bayplan.testing import deployment, fake_cluster, node, until

WEB = deployment("web").replicas(2).image("registry.example/web:1").rolling(surge=1, unavailable=0)
SECONDS = 60


async def main() -> None:
    cluster = fake_cluster(node("n1"), WEB, seed=2)
    await until(cluster, WEB, lambda it: it.status.ready_replicas == 2)
    revision = (await cluster.list(POD, "default")).revision

    print("four ways to change the same object")
    await change_label(cluster)
    await change_history(cluster)
    await change_image(cluster)
    await apply(cluster, "autoscaler", replicas=3, force=True)  # from whoever wrote it before
    try:
        await apply(cluster, "release-bot", replicas=5)
    except Conflict as refusal:
        print("  refused:", refusal.message)
    stored = (await cluster.get(DEPLOYMENT, "web", "default")).doc()
    print("  labels:", stored["metadata"]["labels"])
    print("  history:", stored["spec"]["revisionHistoryLimit"])
    print("  image:", stored["spec"]["template"]["spec"]["containers"][0]["image"])
    print("  replicas:", stored["spec"]["replicas"])

    print("\nwhat the pods went through, as a watch tells it")
    watching = asyncio.create_task(follow(cluster, revision))
    while not watching.done():
        await cluster.advance(1)


async def follow(cluster: Cluster, revision: str) -> None:
    told: dict[str, tuple[bool, str]] = {}
    async for event in cluster.watch(POD, "default", since=revision, timeout=SECONDS):
        assert event.object is not None
        pod = event.object.view(Pod)
        version = pod.spec.containers[0].image.rpartition(":")[2]
        news = event.type == "DELETED", state(pod)
        if told.get(pod.metadata.name) != news:
            print(f"  {event.type:8} {pod.metadata.name}  version {version}  {state(pod)}")
        told[pod.metadata.name] = news


def state(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "going"
    ready = condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "True":
        return "ready"
    return f"{pod.status.phase.lower()} on {pod.spec.node_name}" if pod.spec.node_name else "not placed"


async def change_label(cluster: Cluster) -> None:
    """A merge patch lays a document over the object."""
    await cluster.patch(DEPLOYMENT, {"metadata": {"labels": {"tier": "front"}}}, "web", "default")


async def change_history(cluster: Cluster) -> None:
    """A JSON patch is a list of operations."""
    operations = [{"op": "replace", "path": "/spec/revisionHistoryLimit", "value": 3}]
    await cluster.patch(DEPLOYMENT, operations, "web", "default", type=PatchType.JSON)


async def change_image(cluster: Cluster) -> None:
    """A strategic merge patch knows that containers are told apart by name: the others, had we any, would stay."""
    containers = [{"name": "web", "image": "registry.example/web:2"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await cluster.patch(DEPLOYMENT, patch, "web", "default", type=PatchType.STRATEGIC)


async def apply(cluster: Cluster, manager: str, *, replicas: int, force: bool = False) -> None:
    """Server-side apply: every manager says what it wants of the fields it cares about."""
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    wanted = {**head, "spec": {"replicas": replicas}}
    await cluster.patch(DEPLOYMENT, wanted, "web", "default", type=PatchType.APPLY, manager=manager, force=force)


asyncio.run(main())
