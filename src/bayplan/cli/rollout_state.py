"""How far a rollout is, and what it could go back to.

Source of truth: k8s.io/kubectl 0.36 pkg/polymorphichelpers, its conditions and its words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError

Doc = dict[str, Any]

REVISION = "deployment.kubernetes.io/revision"
CAUSE = "kubernetes.io/change-cause"
HASH = "pod-template-hash"


class RolloutError(PermanentError):
    """A rollout that failed, or a workload that has none."""

    code = "BP-R001"


class Progress(msgspec.Struct, frozen=True):
    """How far a rollout is."""

    words: str
    done: bool = False


class Revision(msgspec.Struct, frozen=True):
    """A state that a workload was in."""

    number: int
    template: Doc
    cause: str = ""


def progress(workload: Doc) -> Progress:
    """How far the rollout of a deployment, daemon set or stateful set is. Raises RolloutError when it has failed."""
    watchers = {"Deployment": _deployment, "DaemonSet": _daemon_set, "StatefulSet": _stateful_set}
    if workload["kind"] not in watchers:
        hint = "deployments, daemon sets and stateful sets have rollouts"
        raise RolloutError(f"no rollouts of {workload['kind']}", hint=hint)
    return watchers[workload["kind"]](workload)


def _deployment(workload: Doc) -> Progress:
    name, wanted, status = _parts(workload)
    if workload["metadata"].get("generation", 0) > status.get("observedGeneration", 0):
        return Progress("Waiting for deployment spec update to be observed...")
    failing = [each for each in status.get("conditions") or () if each["type"] == "Progressing"]
    if failing and failing[0].get("reason") == "ProgressDeadlineExceeded":
        raise RolloutError(
            f'deployment "{name}" exceeded its progress deadline', hint=f"bayplan describe deploy {name}"
        )
    updated, total, available = (status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    head = f'Waiting for deployment "{name}" rollout to finish:'
    if updated < wanted:
        return Progress(f"{head} {updated} out of {wanted} new replicas have been updated...")
    if total > updated:
        return Progress(f"{head} {total - updated} old replicas are pending termination...")
    if available < updated:
        return Progress(f"{head} {available} of {updated} updated replicas are available...")
    return Progress(f'deployment "{name}" successfully rolled out', done=True)


def _daemon_set(workload: Doc) -> Progress:
    name, _, status = _parts(workload)
    _must_roll(workload)
    if workload["metadata"].get("generation", 0) > status.get("observedGeneration", 0):
        return Progress("Waiting for daemon set spec update to be observed...")
    wanted = status.get("desiredNumberScheduled", 0)
    updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    head = f'Waiting for daemon set "{name}" rollout to finish:'
    if updated < wanted:
        return Progress(f"{head} {updated} out of {wanted} new pods have been updated...")
    if available < wanted:
        return Progress(f"{head} {available} of {wanted} updated pods are available...")
    return Progress(f'daemon set "{name}" successfully rolled out', done=True)


def _stateful_set(workload: Doc) -> Progress:
    _, wanted, status = _parts(workload)
    strategy = _must_roll(workload)
    observed = status.get("observedGeneration", 0)
    if not observed or workload["metadata"].get("generation", 0) > observed:
        return Progress("Waiting for statefulset spec update to be observed...")
    if (ready := status.get("readyReplicas", 0)) < wanted:
        return Progress(f"Waiting for {wanted - ready} pods to be ready...")
    updated = status.get("updatedReplicas", 0)
    if strategy.get("rollingUpdate") is not None:
        needed = wanted - strategy["rollingUpdate"].get("partition", 0)
        if updated < needed:
            words = (
                f"Waiting for partitioned roll out to finish: {updated} out of {needed} new pods have been updated..."
            )
            return Progress(words)
        return Progress(f"partitioned roll out complete: {updated} new pods have been updated...", done=True)
    new, old = status.get("updateRevision", ""), status.get("currentRevision", "")
    if new != old:
        return Progress(f"waiting for statefulset rolling update to complete {updated} pods at revision {new}...")
    current = status.get("currentReplicas", 0)
    return Progress(f"statefulset rolling update complete {current} pods at revision {old}...", done=True)


def _parts(workload: Doc) -> tuple[str, int, Doc]:
    return workload["metadata"]["name"], workload["spec"].get("replicas", 1), workload.get("status") or {}


def _must_roll(workload: Doc) -> Doc:
    strategy: Doc = workload["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        raise RolloutError("rollout status is only available for RollingUpdate strategy type")
    return strategy


def revisions(workload: Doc, made: Iterable[Doc]) -> list[Revision]:
    """The states that a workload was in, the oldest first: `made` are its replica sets or controller revisions."""
    uid = workload["metadata"].get("uid")
    own = [each for each in made if any(o.get("uid") == uid for o in each["metadata"].get("ownerReferences") or ())]
    return sorted((found for found in map(_revision, own) if found is not None), key=lambda each: each.number)


def _revision(made: Doc) -> Revision | None:
    notes = made["metadata"].get("annotations") or {}
    if made["kind"] == "ControllerRevision":
        template = ((made.get("data") or {}).get("spec") or {}).get("template") or {}
        return Revision(
            made["revision"], {key: template[key] for key in template if key != "$patch"}, notes.get(CAUSE, "")
        )
    number = notes.get(REVISION, "")
    if not number.isdigit():
        return None
    template = dict(made["spec"]["template"])
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    return Revision(int(number), {**template, "metadata": meta}, notes.get(CAUSE, ""))


def chosen(found: list[Revision], number: int) -> Revision:
    """The revision of a number, or for 0 the one before the last. Raises RolloutError."""
    if number:
        match = [each for each in found if each.number == number]
        if not match:
            known = ", ".join(str(each.number) for each in found) or "none"
            raise RolloutError(f"unable to find specified revision {number} in history", hint=f"known are {known}")
        return match[0]
    if len(found) < 2:
        raise RolloutError("no last revision to roll back to", hint="bayplan rollout history shows what there is")
    return found[-2]
