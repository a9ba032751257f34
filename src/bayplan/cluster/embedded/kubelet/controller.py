"""The virtual kubelet of all nodes, as one controller.

It keeps nothing: a pod's status, annotations and node, and the time, say all that it needs, so a restart changes
nothing. A look at a pod at which nothing is due writes nothing, and then what a client has written into the status
stays; when something is due, the kubelet's own parts are written anew and the rest is left as it is.

Source of truth: SyncPod, SyncTerminatingPod in pkg/kubelet/kubelet.go, generateAPIPodStatus, status_manager.go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Emit,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.kubelet import fit
from bayplan.cluster.embedded.kubelet.addresses import host_ip, pod_ip
from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Defaults, manners
from bayplan.cluster.embedded.kubelet.life import Event, Life
from bayplan.cluster.embedded.kubelet.node import reconcile_node, silent
from bayplan.cluster.embedded.kubelet.run import Doc, instant, mounts_of, runs_of
from bayplan.cluster.embedded.kubelet.summary import conditions, phase
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, Amounts, pod_limits, pod_requests
from bayplan.node.annotations import managers
from bayplan.node.annotations.equipment import Equipment, equipment_of
from bayplan.node.annotations.holdings import HOLDINGS, Holdings
from bayplan.node.topology.manager import Refusal

COMPONENT = "kubelet"
_DEADLINE = Event("Normal", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_REFUSAL = SECOND
"""How long the managers of a machine take to refuse. The scheduler does not know why they do, and a ReplicaSet makes a
new pod at once: in no time at all that would never end."""
_ORDER = (
    "observedGeneration",
    "phase",
    "conditions",
    "message",
    "reason",
    "nominatedNodeName",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "qosClass",
)
"""The fields of a status as the API server orders them; others follow."""


def _bound_pod(change: Change, _view: View) -> Iterable[Key]:
    if change.type is not ChangeType.DELETED and change.new.view(Pod).spec.node_name:
        return (change.new.key,)
    return ()


def _node_and_pods(change: Change, view: View) -> Iterable[Key]:
    """A node's pods are concerned only when its kubelet comes (back) to life."""
    if change.type is ChangeType.DELETED:
        return
    yield ("", change.new.name)
    woken = change.old is None or silent(change.old.meta)
    if woken and not silent(change.new.meta):
        for pod in view.pods_on(change.new.name):
            yield pod.key


class KubeletController:
    """One virtual kubelet for every node that is not stopped."""

    name = COMPONENT
    watches: Mapping[Kind, Concern]

    def __init__(self, defaults: Defaults = USUAL) -> None:
        self.watches = {POD: _bound_pod, NODE: _node_and_pods}
        self._defaults = defaults

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        """A pod's next step; a key without a namespace is a node's."""
        if not key[0]:
            node = view.get(NODE, *key)
            return NOTHING if node is None else reconcile_node(node, now)
        item = view.get(POD, *key)
        if item is None:
            return NOTHING
        pod = item.view(Pod)
        if not pod.spec.node_name or (pod.is_terminal and item.meta.deletion_timestamp is None):
            return NOTHING
        host = view.get(NODE, "", pod.spec.node_name)
        if host is None or silent(host.meta):
            return NOTHING
        if pod.is_terminal:  # until finalizers go, if there are any; asked for once
            return Outcome([Delete(item, grace=0)]) if item.meta.deletion_grace_period_seconds else NOTHING
        return _Look(item, host.view(Node), view, now, self._defaults).outcome()


class _Look:
    """One look at one pod that is not over."""

    def __init__(self, item: Object, node: Node, view: View, now: Instant, defaults: Defaults) -> None:
        self.item = item
        self.pod = item.view(Pod)
        self.node = node
        self.view = view
        self.now = now
        self.stored: Doc = item.sections["status"].plain()
        self.new = not self.stored.get("startTime")
        self.began = instant(self.stored.get("startTime")) or Instant(now // SECOND * SECOND)
        found = manners(self.pod, defaults)
        self.problems = found.problems
        self.runs = runs_of(self.pod.spec, found.of, self.stored)
        self.life = Life(self.pod, self.runs, self.began, now, node.status.images)
        self.first: list[Write] = []
        """What is written before the status: what the pod holds of its node."""
        self.patient = False
        """Whether a refusal waits for its time."""

    def outcome(self) -> Outcome:
        if self.item.meta.deletion_timestamp is not None:
            return self._going()
        if self.new:
            refused = self._refusal()
            if refused is not None:
                return self._refuse(refused)
            self.life.first_look()
            for problem in self.problems:
                self.life.warning("InvalidBehaviour", str(problem))
        if self._past_deadline():
            return self._too_late()
        self.life.go_on()
        self._mind_deadline()
        return self._write()

    def _refusal(self) -> Refusal | None:
        """Why the node does not take the pod. As upstream, the managers of its machine are asked before the rest."""
        equipment = equipment_of(self.node.metadata.annotations)
        if not isinstance(equipment, Equipment):
            return fit.refusal(self.item, self.node, self._neighbours)
        others = {each.uid: each for each in self._neighbours}
        given = managers.admit(equipment, self.pod, (each.view(Pod) for each in others.values()))
        refused = given.refusal or fit.refusal(self.item, self.node, self._neighbours)
        self.patient = given.refusal is not None
        self._record(given.holdings if refused is given.refusal else None)
        self.first += [
            Emit(others[uid], "Warning", "UnknownHoldings", why, COMPONENT) for uid, why in given.unknown.items()
        ]
        return refused

    def _record(self, holdings: Holdings | None) -> None:
        """Write down what the pod holds; what it claims to hold and does not is taken off it."""
        text = None if holdings is None else holdings.text()
        if self.item.meta.annotations.get(HOLDINGS) != text:
            self.first.append(Patch(self.item, {"metadata": {"annotations": {HOLDINGS: text}}}))

    @functools.cached_property
    def _neighbours(self) -> list[Object]:
        """The other pods that the node has taken and that are not over."""
        return [
            other
            for other in self.view.pods_on(self.pod.spec.node_name)
            if other is not self.item
            and (status := other.view(Pod).status).start_time is not None
            and status.phase not in ("Succeeded", "Failed")
        ]

    # --- ends

    def _going(self) -> Outcome:
        """The pod is being deleted: stop its containers, tell how they ended, and let it go."""
        meta = self.item.meta
        grace = meta.deletion_grace_period_seconds or 0
        asked = Instant(parse_rfc3339(meta.deletion_timestamp or "") - grace * SECOND)
        told = self.stored.get("observedGeneration", 0) >= meta.generation
        if not told:
            for run in self.runs:
                if run.running_since is not None:
                    self.life.tell_stopping(run)
        if not self.life.stop(asked, grace, told=True):
            for run in self.runs:
                if run.running_since is not None:
                    run.judge(self.now)
            return self._write()
        self._close()
        outcome = self._write(over=True)
        return Outcome([*outcome.writes, Delete(self.item, grace=0)])

    def _close(self) -> None:
        """Nothing runs any more; what was about to start will not."""
        initialized = not self.pod.spec.init_containers or any(not run.never_ran for run in self.life.mains)
        for run in self.runs:
            if run.waiting is not None and (initialized or not run.never_ran):
                run.lose()

    def _deadline(self) -> Instant | None:
        span = self.pod.spec.active_deadline_seconds
        return None if span is None else Instant(self.began + span * SECOND)

    def _past_deadline(self) -> bool:
        deadline = self._deadline()
        return deadline is not None and deadline <= self.now

    def _mind_deadline(self) -> None:
        deadline = self._deadline()
        if deadline is not None and (self.life.next is None or deadline < self.life.next):
            self.life.next = deadline

    def _too_late(self) -> Outcome:
        deadline = self._deadline()
        assert deadline is not None
        if not self.life.stop(deadline, self.pod.spec.termination_grace_period_seconds):
            return Outcome(again=self.life.next)
        self._close()
        self.life.events.insert(0, _DEADLINE)
        return self._write(over=True, failed=_DEADLINE)

    def _refuse(self, refused: Refusal) -> Outcome:
        due = Instant(self._came() + _REFUSAL)
        if self.patient and self.now < due:
            return Outcome(again=due)
        kept: Doc = {key: self.stored[key] for key in ("qosClass", "resourceClaimStatuses") if key in self.stored}
        status: Doc = {
            "observedGeneration": self.item.meta.generation,
            "phase": "Failed",
            "message": f"Pod was rejected: {refused.message}",
            "reason": refused.reason,
            "startTime": rfc3339(self.now),
            **kept,
        }
        told = Emit(self.item, "Warning", refused.reason, refused.message, COMPONENT)
        return Outcome([*self.first, SetStatus(self.item, status), told])

    def _came(self) -> Instant:
        """When the pod was given to the node."""
        scheduled = condition(self.pod.status.conditions, "PodScheduled")
        at = scheduled.last_transition_time if scheduled is not None else None
        return instant(at or self.item.meta.creation_timestamp) or self.now

    # --- writing

    def _write(self, *, over: bool = False, failed: Event | None = None) -> Outcome:
        """The look's outcome: a status only if something of it changed."""
        writes = self.first
        outdated = self.stored.get("observedGeneration", 0) < self.item.meta.generation
        gates = bool(self.pod.spec.readiness_gates)
        if over or outdated or gates or self.new or any(run.touched for run in self.runs):
            status = self._status(over=over, failed=failed)
            if status != self.stored:
                writes.append(SetStatus(self.item, status))
        host = self.pod.spec.node_name
        writes += [
            Emit(self.item, event.type, event.reason, event.message, COMPONENT, event.field, host)
            for event in self.life.events
        ]
        return Outcome(writes, None if over else self.life.next)

    def _status(self, *, over: bool, failed: Event | None) -> Doc:
        pod, stored = self.pod, self.stored
        now_phase = phase(pod, self.runs, over=over)
        if failed is not None or (over and now_phase in ("Pending", "Running")):
            now_phase = "Failed"
        status: Doc = dict(stored)
        status |= {
            "observedGeneration": self.item.meta.generation,
            "phase": now_phase,
            "conditions": conditions(pod, self.runs, now_phase, stored.get("conditions", ()), self.now),
            "startTime": rfc3339(self.began),
        }
        status |= self._containers() | self._resources() | self._addresses()
        if failed is not None:
            status |= {"reason": failed.reason, "message": failed.message}
        return {key: status[key] for key in _ORDER if key in status} | status

    def _containers(self) -> Doc:
        mounts = mounts_of(self.item.sections["spec"])
        mains = sorted(self.life.mains, key=lambda run: run.name)  # as upstream; init containers keep their order
        found: Doc = {"containerStatuses": [run.document(mounts.get(run.name)) for run in mains]}
        init = [run.document(mounts.get(run.name)) for run in self.runs if run.init]
        return {"initContainerStatuses": init} | found if init else found

    def _resources(self) -> Doc:
        sides = _resources(self.item.sections["spec"])
        return {"allocatedResources": sides.get("requests", {}), "resources": sides} if sides else {}

    def _addresses(self) -> Doc:
        found: Doc = {}
        host = self.stored.get("hostIP") or host_ip(self.node)
        if host:
            found |= {"hostIP": host, "hostIPs": [{"ip": host}]}
        address = self.stored.get("podIP") or (host if self.pod.spec.host_network else self._new_address())
        if address:
            found |= {"podIP": address, "podIPs": self.stored.get("podIPs") or [{"ip": address}]}
        return found

    def _new_address(self) -> str:
        taken = {other.view(Pod).status.pod_ip for other in self._neighbours}
        return pod_ip(self.node, self.item.uid, taken)


@functools.lru_cache(maxsize=4096)
def _resources(spec: Section) -> dict[str, dict[str, str]]:
    """What a pod as a whole asks for and is limited to. Pods of one template share the answer: not to be changed."""
    asked = Pod(spec=spec.view(PodSpec))
    sides = {"requests": _texts(pod_requests(asked)), "limits": _texts(pod_limits(asked))}
    return {side: found for side, found in sides.items() if found}


def _texts(found: Amounts) -> dict[str, str]:
    return {name: str(_quantity(name, amount)) for name, amount in found.items() if amount}


def _quantity(name: str, amount: int) -> Quantity:
    if name == CPU:
        return Quantity.of_milli(amount)
    return Quantity.whole(amount, Format.DECIMAL_SI if "/" in name else Format.BINARY_SI)
