"""Accounts of a lab with just some rights, and the way to be one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bayplan.cluster.credentials import kubeconfig, write_private
from bayplan.cluster.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import find_access
from bayplan.ledger.manifest import roles
from bayplan.ledger.rights import Need, Owner, Right, needs
from bayplan.model.errors import AlreadyExists
from bayplan.service.settings import LedgerSettings
from tests.ledger.process.running import happens

RBAC = {
    name: Kind("rbac.authorization.k8s.io", "v1", name, f"{name.lower()}s", namespaced=not name.startswith("Cluster"))
    for name in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
}


def kubectl(lab: Lab, *words: str, given: str = "") -> str:
    """What kubectl prints; what it complains of ends the test."""
    done = subprocess.run(lab.kubectl_command(*words), input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bayplan(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """`bayplan`, from a shell that knows of nothing."""
    homes = {name: str(folder / name.lower()) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    command = [sys.executable, "-m", "bayplan", *map(str, words)]
    return subprocess.run(command, env={**os.environ, **homes}, capture_output=True, text=True, check=False)


def as_account(lab: Lab, folder: Path, namespace: str, name: str) -> Path:
    """A kubeconfig whose one identity is a token of a ServiceAccount."""
    token = kubectl(lab, "create", "token", name, "-n", namespace).strip()
    authority = (lab.folder / "ca.crt").read_bytes()
    return write_private(folder / f"{name}.kubeconfig", kubeconfig(name, lab.url, authority, token))


def posing(lab: Lab, namespace: str, name: str) -> LiveCluster:
    """The lab as a ServiceAccount sees it; the administrator poses as it."""
    access = find_access(lab.kubeconfig)
    user = msgspec.structs.replace(access.user, impersonate=f"system:serviceaccount:{namespace}:{name}")
    return LiveCluster(msgspec.structs.replace(access, user=user))


def without(lines: Iterable[Need], right: Right) -> list[Need]:
    """The lines less one verb."""
    found = []
    for line in lines:
        verbs = " ".join(each.verb for each in line.rights if each != right)
        if verbs:
            found.append(line._replace(verbs=verbs))
    return found


async def granted(cluster: LiveCluster, lines: Sequence[Need], namespace: str, name: str) -> None:
    """Give an account these rights."""
    for each in roles(lines, namespace, name):
        place = each["metadata"].get("namespace", "")
        await cluster.create(RBAC[each["kind"]], each, place)


async def made(cluster: LiveCluster, kind: Kind, document: dict[str, Any], namespace: str = "") -> None:
    """Make an object, unless an earlier test has."""
    try:
        await cluster.create(kind, document, namespace)
    except AlreadyExists:
        return


async def namespace_made(cluster: LiveCluster, name: str) -> None:
    """Make a namespace, and wait until pods may be made there."""
    await made(cluster, NAMESPACE, {"metadata": {"name": name}})

    async def ready() -> bool:
        return bool((await cluster.list(SERVICE_ACCOUNT, name)).items)

    await happens(ready)


def everything(namespace: str, *more: Owner, **settings: Any) -> tuple[LedgerSettings, list[Need]]:
    """Settings with all that needs rights turned on, and what it needs."""
    chosen = LedgerSettings(finalizers="on", kubelet_service="on", lease_namespace=namespace, **settings)
    return chosen, needs(chosen, more) if more else needs(chosen)
