"""Refusals: every fault at once, in the API server's words, and nothing stored.

Run it: python examples/04_invalid_objects.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from bayplan.cluster.kinds import DEPLOYMENT, POD
from bayplan.model.errors import ApiError, TemporaryError
from bayplan.testing import deployment, disruption_budget, fake_cluster, namespace, node, pod, quota, until

CROOKED = {
    "metadata": {"name": "Web_Frontend", "labels": {"tier": "front end"}},
    "spec": {
        "replicas": -1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "wep"}},
            "spec": {
                "restartPolicy": "Sometimes",
                "containers": [
                    {
                        "name": "web",
                        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}},
                        "ports": [{"containerPort": 99999}],
                    }
                ],
            },
        },
    },
}


async def refused(what: str, call: Awaitable[object]) -> None:
    try:
        await call
    except ApiError as refusal:
        again = "try again later" if isinstance(refusal, TemporaryError) else "not like this"
        print(f"\n{what}\n  {refusal.status} {refusal.reason}, {refusal.code}: {again}")
        for cause in refusal.causes:
            print(f"  - {cause.field}: {cause.message}".replace("- : ", "- "))
        if not refusal.causes:
            print(f"  - {refusal.message}")
    else:
        raise AssertionError(f"{what}: nobody minded")


async def main() -> None:
    solo = pod("solo").labelled(app="solo")
    budget = disruption_budget("solo").covering(app="solo").at_least(1)
    cluster = fake_cluster(node("n1"), namespace("lab"), quota("gpus", "lab").allows(gpu=4), solo, budget)
    await until(cluster, solo, lambda it: it.status.phase == "Running")

    await refused("everything wrong at once", cluster.create(DEPLOYMENT, CROOKED, "default"))
    misspelt = deployment("web").having("spec.replcias", 3).document()
    await refused("a misspelt field, read strictly", cluster.create(DEPLOYMENT, misspelt, "default", strict=True))
    mistyped = deployment("web").having("spec.replicas", "three").document()
    await refused("a text for a number", cluster.create(DEPLOYMENT, mistyped, "default"))
    await refused("more than the quota", pod("big", "lab").requests(gpu=8).create(cluster))
    await refused("the same name twice", solo.create(cluster))
    elsewhere = {"spec": {"nodeSelector": {"zone": "b"}}}
    await refused("what cannot change any more", cluster.patch(POD, elsewhere, "solo", "default"))
    await refused("what the budget forbids", cluster.evict("solo", "default"))

    stored = await cluster.list(DEPLOYMENT)
    print(f"\nstored after all that: {len(stored.items)} deployments")


asyncio.run(main())
