"""No right is one too many: take any verb away, and the code that needs it is refused, and the doctor says so.

Lists are streamed where the server can, and `watch` suffices for that; where it cannot they are asked for: that is the
path taken here for `list`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.cluster.kinds import ENDPOINT_SLICE, KINDS, LEASE, NODE, SERVICE, Kind
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.leases import Election, Place
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.objects import Object
from bayplan.ledger.finalizers import FINALIZER, Finalizers, Mark, Stored, patch
from bayplan.ledger.kubelet_service import _OURS, NAMESPACE, reconcile
from bayplan.ledger.kubelet_service import NAME as KUBELETS
from bayplan.ledger.process import cluster_id
from bayplan.ledger.questions.doctor.examine import Account, Examination, examine_cluster
from bayplan.ledger.rights import OWNERS, TABLE, Owner, Right
from bayplan.model.clock import SystemClock
from bayplan.model.errors import Forbidden, NotFound
from tests.ledger.process.running import happens
from tests.ledger.rights.accounts import everything, granted, made, namespace_made, posing, without

pytestmark = pytest.mark.slow

PLACE = "rights"
SETTINGS, LINES = everything(PLACE)
RIGHTS = [right for line in LINES for right in line.rights]
Step = Callable[[LiveCluster], Awaitable[Any]]

_RESOURCES = {kind.resource: kind for kind in KINDS.values()}


def _kind(right: Right) -> Kind:
    """The kind of a resource; of one that the lab does not have, one that it might have: rights are asked first."""
    name = f"{right.resource}.{right.group}" if right.group else right.resource
    return _RESOURCES.get(name) or Kind(right.group, "v1", right.resource, right.resource, namespaced=True)


async def _nothing(_: LiveCluster) -> None:
    pass


def _followed(kind: Kind, *, streams: bool) -> Step:
    async def act(cluster: LiveCluster) -> None:
        async with Reflector(cluster, kind, streams=streams) as batches:
            await anext(batches)

    return act


async def _elected(cluster: LiveCluster) -> None:
    reigned = asyncio.Event()

    async def reign() -> None:
        reigned.set()

    place = Place(SETTINGS.lease_namespace, SETTINGS.lease_name)
    await Election(cluster, place, "me", clock=SystemClock()).run(reign)
    assert reigned.is_set()


async def _no_lease(admin: LiveCluster) -> None:
    await _gone(admin, LEASE, SETTINGS.lease_name, PLACE)


async def _a_lease(admin: LiveCluster) -> None:
    await made(admin, LEASE, {"metadata": {"name": SETTINGS.lease_name}, "spec": {"holderIdentity": ""}}, PLACE)


async def _gone(admin: LiveCluster, kind: Kind, name: str, namespace: str) -> None:
    try:
        await admin.delete(kind, name, namespace)
    except NotFound:
        return


async def _no_service(admin: LiveCluster) -> None:
    await _gone(admin, SERVICE, KUBELETS, NAMESPACE)


async def _no_slices(admin: LiveCluster) -> None:
    for each in (await admin.list(ENDPOINT_SLICE, NAMESPACE)).items:
        if each.name.startswith(KUBELETS):
            await _gone(admin, ENDPOINT_SLICE, each.name, NAMESPACE)


async def _as_it_was(admin: LiveCluster) -> None:
    await reconcile(admin)


async def _one_too_many(admin: LiveCluster) -> None:
    await reconcile(admin)
    labels, name = dict(_OURS), f"{KUBELETS}-left"
    left = {"metadata": {"name": name, "labels": labels}, "addressType": "IPv6", "endpoints": [], "ports": []}
    await made(admin, ENDPOINT_SLICE, left, NAMESPACE)


async def _other_ports(cluster: LiveCluster) -> None:
    await reconcile(cluster, (10250, 10255))


def _marked(kind: Kind) -> Step:
    """Put the finalizer on; who may is told that there is no such object."""

    async def act(cluster: LiveCluster) -> None:
        assert not await patch(cluster, Mark(kind, PLACE, "nobody", "uid", "1", (FINALIZER,)))

    return act


class Noting:
    """A cluster whose refusals to get something are noted: finalizers put up with them."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self.refusals: list[Forbidden] = []

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        try:
            return await self._cluster.get(kind, name, namespace)
        except Forbidden as error:
            self.refusals.append(error)
            raise


def _reread(kind: Kind) -> Step:
    """Read the object of a version that is stored, to decide about its finalizer."""

    async def act(cluster: LiveCluster) -> None:
        noting = Noting(cluster)
        finalizers = Finalizers(noting, SystemClock())  # type: ignore[arg-type]  # all that it needs here
        finalizers.durable((), [Stored(kind, PLACE, "nobody", "uid", 1)])
        assert await finalizers._carry_out()
        if noting.refusals:
            raise noting.refusals[0]

    return act


_SERVICE, _SLICES = Owner("", "services"), Owner("discovery.k8s.io", "endpointslices")
_LEASES = Owner("coordination.k8s.io", "leases")
PATHS: dict[tuple[Owner, str], tuple[Step, Step]] = {
    (Owner("", "namespaces"), "get"): (_nothing, lambda cluster: cluster_id(cluster, "auto")),
    (_LEASES, "get"): (_nothing, _elected),
    (_LEASES, "create"): (_no_lease, _elected),
    (_LEASES, "update"): (_a_lease, _elected),
    (_SERVICE, "get"): (_nothing, reconcile),
    (_SERVICE, "create"): (_no_service, reconcile),
    (_SERVICE, "update"): (_as_it_was, _other_ports),
    (_SLICES, "list"): (_nothing, reconcile),
    (_SLICES, "create"): (_no_slices, reconcile),
    (_SLICES, "update"): (_as_it_was, _other_ports),
    (_SLICES, "get"): (_one_too_many, reconcile),
    (_SLICES, "delete"): (_one_too_many, reconcile),
}
"""What must be the case, and the code that then needs the verb. What is listed and watched is followed, and what is
patched gets a finalizer, or is read for it."""


def _path(right: Right) -> tuple[Step, Step]:
    path = PATHS.get((Owner(right.group, right.resource), right.verb))
    if path is None and right.verb in ("get", "patch"):
        return _nothing, (_marked if right.verb == "patch" else _reread)(_kind(right))
    return path or (_nothing, _followed(_kind(right), streams=right.verb == "watch"))


def test_every_other_verb_has_a_path() -> None:
    followed = {(Owner(line.group, line.resource), verb) for line in LINES for verb in line.verbs.split()}
    others = {each for each in followed if each[1] not in ("list", "watch", "patch") and each[0] not in OWNERS}
    assert others | {(_SLICES, "list")} == PATHS.keys()


@pytest.fixture(scope="module")
def accounts(lab: Lab) -> dict[Right, str]:
    """For each right an account that has all but it; and `whole`, which has all."""
    names = {right: f"without-{number}" for number, right in enumerate(RIGHTS)}
    address = {"type": "InternalIP", "address": "10.1.2.3"}

    async def make() -> None:
        async with LiveCluster.find(lab.kubeconfig) as admin:
            await namespace_made(admin, PLACE)
            await made(admin, NODE, {"metadata": {"name": "rights"}, "status": {"addresses": [address]}})
            await granted(admin, LINES, PLACE, "whole")
            await asyncio.gather(*(granted(admin, without(LINES, right), PLACE, name) for right, name in names.items()))
            await happens(lambda: _finds(admin, "whole", []))

    asyncio.run(make())
    return names


async def _refused(step: Step, cluster: LiveCluster) -> str:
    """What a path was refused; empty: nothing."""
    async with cluster:
        try:
            await step(cluster)
        except Forbidden as error:
            return error.message
        except NotFound:  # a kind that the lab does not have may be read
            return ""
    return ""


async def _finds(admin: LiveCluster, account: str, denied: list[str]) -> bool:
    """Whether the doctor says that an account may not do these, and nothing else."""
    wanted = Examination(now=SystemClock().now(), settings=SETTINGS, account=Account(PLACE, account))
    report = await examine_cluster(admin, None, wanted)
    return [each.subject for each in report.findings if each.code == "LD004"] == denied


@pytest.mark.parametrize("right", RIGHTS, ids=str)
async def test_without_it_something_fails(right: Right, lab: Lab, accounts: dict[Right, str]) -> None:
    prepare, act = _path(right)
    async with LiveCluster.find(lab.kubeconfig) as admin:
        if Owner(right.group, right.resource) in {Owner(line.group, line.resource) for line in TABLE}:
            await happens(lambda: _finds(admin, accounts[right], [str(right)]))  # roles take a moment to hold
        await prepare(admin)
        message = await _refused(act, posing(lab, PLACE, accounts[right]))
        assert f'cannot {right.verb} resource "{right.resource}"' in message
        await prepare(admin)
        assert await _refused(act, posing(lab, PLACE, "whole")) == ""
