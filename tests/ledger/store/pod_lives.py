"""Lives of GPU pods, version by version, as the embedded engine tells them: to train snapshots' dictionary, to measure.

    python -m tests.ledger.store.pod_lives src/bayplan/ledger/dictionaries/1.zdict

trains a dictionary from five seeds. Never overwrite one that was released: give the new one the next number, and set
`snapshots.CURRENT`. Names, images, labels and values are drawn anew for every seed, so sizes measured with another seed
are those of pods that the dictionary has not seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.snapshots import split
from bayplan.testing import fake_cluster, job, node, stateful_set

DICTIONARY_SIZE = 65_536
_VENDORS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915", "nvidia.com/mig-1g.10gb")
_ENV = ("NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "OMP_NUM_THREADS", "HF_HOME")
_PARTS = (
    "al",
    "be",
    "cor",
    "dan",
    "el",
    "fir",
    "gam",
    "hel",
    "in",
    "jo",
    "ka",
    "lo",
    "mi",
    "na",
    "or",
    "pe",
    "ri",
    "so",
)


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_PARTS, k=3))


def _dress(workload: Any, chance: random.Random) -> Any:
    """Give a workload's pods what real ones have: labels, a pulled image, environment, volumes, tolerations."""
    team, words = _word(chance), [_word(chance) for _ in range(4)]
    digest = f"{chance.getrandbits(256):064x}"
    volumes = [
        {"name": words[0], "nfs": {"server": f"{words[1]}.{team}.example", "path": f"/{words[0]}"}},
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{chance.randint(1, 64)}Gi"}},
        _token_volume(chance),
    ]
    env = [{"name": name, "value": str(chance.randint(0, 9999))} for name in chance.sample(_ENV, 4)]
    mounts = [{"name": words[0], "mountPath": f"/{words[2]}"}, {"name": "dshm", "mountPath": "/dev/shm"}]
    token = {
        "name": volumes[-1]["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    mounts.append(token)
    gpus = str(chance.choice((1, 2, 4, 8)))
    vendor = chance.choice(_VENDORS)
    resources = {"limits": {vendor: gpus, "memory": "64Gi"}, "requests": {vendor: gpus, "cpu": "8", "memory": "64Gi"}}
    container = {
        "name": words[3],
        "image": f"registry.{team}.example/{words[2]}/{words[3]}@sha256:{digest}",
        "command": ["torchrun", f"--nproc-per-node={gpus}", f"/opt/{words[3]}.py"],
        "env": env,
        "resources": resources,
        "volumeMounts": mounts,
    }
    workload = workload.pod_labelled(
        {"app.kubernetes.io/name": words[3], "team": team, "kueue.x-k8s.io/queue-name": f"{team}-queue"}
    )
    workload = workload.pod_having("containers", [container]).pod_having("volumes", volumes)
    workload = workload.pod_having("serviceAccountName", "default")
    return workload.tolerates("nvidia.com/gpu", effect="NoSchedule")


def _token_volume(chance: random.Random) -> dict[str, Any]:
    root = {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}
    field = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": root},
        {"downwardAPI": {"items": [field]}},
    ]
    return {"name": f"kube-api-access-{_word(chance)[:5]}", "projected": {"defaultMode": 420, "sources": sources}}


def _fields(value: Any) -> dict[str, Any]:
    """Who owns it, in the API server's form: `f:` for fields, `k:` for the items of keyed lists."""
    if isinstance(value, dict):
        return {f"f:{name}": _fields(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = [name for name in ("name", "type", "uid", "mountPath", "ip") if name in value[0]][:1]
        return {
            f"k:{json.dumps({name: item[name] for name in keys}, separators=(',', ':'))}": {".": {}, **_fields(item)}
            for item in value
            if keys and keys[0] in item
        }
    return {}


def _managed(obj: Object) -> Object:
    """The same version with the managedFields that an API server keeps of such a pod."""
    doc = obj.doc()
    made = doc["metadata"]["creationTimestamp"]
    meta = {
        name: doc["metadata"][name] for name in ("generateName", "labels", "ownerReferences") if name in doc["metadata"]
    }
    created = {"f:metadata": _fields(meta), "f:spec": _fields(doc["spec"])}
    common = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    entries = [{"manager": "kube-controller-manager", **common, "time": made, "fieldsV1": created}]
    if doc.get("status", {}).get("conditions"):
        times = [each.get("lastTransitionTime") or made for each in doc["status"]["conditions"]]
        status = {"f:status": _fields({k: v for k, v in doc["status"].items() if k != "qosClass"})}
        entries.append(
            {"manager": "kubelet", **common, "time": max(times), "fieldsV1": status, "subresource": "status"}
        )
    doc["metadata"]["managedFields"] = entries
    return Object.from_raw(POD, msgspec.json.encode(doc))


async def pod_lives(seed: int, workloads: int = 60) -> list[Object]:
    """Every version of every pod of some jobs and stateful sets, in the order in which they came to be."""
    chance = random.Random(seed)
    nodes = [_gpu_node(f"{_word(chance)}-{i}") for i in range(20)]
    cluster = fake_cluster(*nodes, seed=seed)
    versions: list[Object] = []

    async def record() -> None:
        async for event in cluster.watch(POD):
            versions.extend([_managed(event.object)] if event.object is not None else [])

    watching = asyncio.create_task(record())
    for i in range(workloads):
        name = f"{_word(chance)}-{_word(chance)}"
        one: Any = job(name).runs(4, at_once=2) if i % 3 else stateful_set(name).replicas(3)
        how = {"run_for": f"{chance.randint(20, 300)}s", "exit_code": chance.choice((0, 0, 0, 1, 137))} if i % 3 else {}
        await _dress(one, chance).behaves(**how).create(cluster)
    for _ in range(900):
        await cluster.advance(1)
        await asyncio.sleep(0)  # the watch's turn
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    return versions


def _gpu_node(name: str) -> Any:
    return node(name).offers(cpu=128, memory="2Ti", others=dict.fromkeys(_VENDORS, "64"))


def train(versions: list[Object], number: int) -> bytes:
    """A dictionary for these versions' states and specifications."""
    samples: list[bytes | bytearray | memoryview] = [part for each in versions for part in split(each) if part]
    return zstandard.train_dictionary(DICTIONARY_SIZE, samples, dict_id=number).as_bytes()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    lives = [each for seed in range(100, 105) for each in asyncio.run(pod_lives(seed))]
    target.write_bytes(train(lives, int(target.stem)))
