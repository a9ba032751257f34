"""The pods that files stand for: pods themselves, and as many as workloads would make on one node.

Objects are read as the API server reads them, and get its defaults: a limit is also the request if there is none. Of
its rules only those of requests and limits are asked: the others do not matter to a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bayplan.cli.manifests import Manifest, read_manifests
from bayplan.cluster.embedded.admission.body import read_object
from bayplan.cluster.embedded.admission.fields import Errors
from bayplan.cluster.embedded.admission.pods.defaults import default_pod
from bayplan.cluster.embedded.admission.pods.resources import validate_resource_requirements
from bayplan.cluster.kinds import KINDS
from bayplan.model.errors import BadRequest, Details, Invalid, PermanentError
from bayplan.model.objects import from_builtins
from bayplan.model.pods import Pod
from bayplan.model.quantity import QuantityError, parse

Doc = dict[str, Any]

_REPLICATED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
MAKERS = ("Pod", *_REPLICATED, "DaemonSet", "Job", "CronJob")
"""The kinds that make pods."""
_MOST = 4096
"""Pods of one object: more fit on no node, and are a slip of the finger."""


class NoPodsError(PermanentError):
    """There is nothing to plan."""

    code = "BP-N075"


class SamePodError(PermanentError):
    """Two objects stand for the same pod."""

    code = "BP-N076"


class TooManyPodsError(PermanentError):
    """An object that makes more pods than any node takes."""

    code = "BP-N077"


class Found(msgspec.Struct, frozen=True):
    """The pods in the order of the files, and the objects that make none."""

    pods: tuple[Pod, ...]
    passed_over: tuple[str, ...] = ()


def read_pods(sources: Sequence[str]) -> Found:
    """All pods of the files.

    Raises ManifestError, BadRequest, Invalid, NoPodsError, SamePodError, TooManyPodsError, OSError.
    """
    pods: list[Pod] = []
    passed: list[str] = []
    places: dict[str, str] = {}
    for manifest in read_manifests(sources):
        kind = KINDS.get(manifest.document["kind"])
        if kind is None or kind.name not in MAKERS or kind.api_version != manifest.document["apiVersion"]:
            passed.append(f"{manifest.document['kind']}/{manifest.name}")
            continue
        for pod in _pods(manifest):
            if pod.is_terminal:
                passed.append(f"Pod/{pod.metadata.name} ({pod.status.phase})")
                continue
            _note(pod, manifest.origin, places)
            pods.append(pod)
    if not pods:
        what = f"; passed over: {', '.join(passed)}" if passed else ""
        raise NoPodsError(f"no pods in {', '.join(sources)}{what}", hint=f"what makes pods: {', '.join(MAKERS)}")
    return Found(tuple(pods), tuple(passed))


def _note(pod: Pod, origin: str, places: dict[str, str]) -> None:
    for key in {pod.metadata.uid, f"{pod.metadata.namespace}/{pod.metadata.name}"}:
        if key in places:
            raise SamePodError(
                f"{origin}: pod {key} stands in {places[key]} already", hint="give one of them another name"
            )
        places[key] = origin


def _pods(manifest: Manifest) -> Iterator[Pod]:
    document = _read(manifest)
    meta = document.get("metadata") or {}
    spec = document.get("spec") or {}
    name = meta.get("name") or (meta.get("generateName") or "unnamed-") + "0"
    if document["kind"] == "Pod":
        yield _pod(manifest, document, name, meta)
        return
    if document["kind"] == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    numbers = _numbers(document["kind"], spec)
    if len(numbers) > _MOST:
        raise TooManyPodsError(
            f"{manifest.origin}: {document['kind']} {name} has {len(numbers)} pods; a plan takes {_MOST} of one object",
            hint="plan for as many as one node is to take",
        )
    template = spec.get("template") or {}
    for number in numbers:
        of_node = document["kind"] == "DaemonSet"
        own = {"namespace": meta.get("namespace", ""), "labels": (template.get("metadata") or {}).get("labels", {})}
        pod = {"metadata": own, "spec": msgspec.json.decode(msgspec.json.encode(template.get("spec") or {}))}
        yield _pod(manifest, pod, name if of_node else f"{name}-{number}", own)


def _numbers(kind: str, spec: Doc) -> range:
    """The pods of a workload that run at once; of a DaemonSet, the one that a node has."""
    if kind in _REPLICATED:
        first = (spec.get("ordinals") or {}).get("start", 0) if kind == "StatefulSet" else 0
        return range(first, first + spec.get("replicas", 1))
    if kind == "DaemonSet":
        return range(1)
    at_once = spec.get("parallelism", 1)
    return range(min(at_once, spec.get("completions", at_once)))


def _read(manifest: Manifest) -> Doc:
    """As the API server would, strictly. Raises BadRequest that names the place."""
    kind = KINDS[manifest.document["kind"]]
    try:
        document, _ = read_object(kind, msgspec.json.encode(manifest.document), validation="Strict")
    except BadRequest as wrong:
        where = ", ".join(_no_amounts(manifest.document, ""))
        raise BadRequest(f"{manifest.origin}: {wrong.message}", hint=where and f"mend {where}") from wrong
    return document


def _no_amounts(value: object, path: str) -> Iterator[str]:
    """Requests and limits that are no quantities: the API server does not say which."""
    if isinstance(value, list):
        for at, each in enumerate(value):
            yield from _no_amounts(each, f"{path}[{at}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            if path.endswith((".requests", ".limits")) and not _is_amount(each):
                yield f'{path}.{key} "{each}"'
            yield from _no_amounts(each, f"{path}.{key}".lstrip("."))


def _is_amount(value: object) -> bool:
    try:
        parse(str(value))
    except QuantityError:
        return False
    return True


def _pod(manifest: Manifest, document: Doc, name: str, meta: Doc) -> Pod:
    namespace = meta.get("namespace") or "default"
    document["metadata"] = {
        **meta,
        "name": name,
        "namespace": namespace,
        "uid": meta.get("uid") or f"{namespace}/{name}",
    }
    document.setdefault("spec", {})
    try:
        default_pod(document)
        _check_resources(manifest, name, document["spec"])
        return from_builtins(document, Pod)
    except (QuantityError, msgspec.ValidationError) as wrong:
        raise BadRequest(f"{manifest.origin}: {name}: {wrong}") from wrong


def _check_resources(manifest: Manifest, name: str, spec: Doc) -> None:
    """Negative amounts, requests above their limits and such. Raises Invalid that names the place."""
    errors = Errors()
    claims = [each.get("name", "") for each in spec.get("resourceClaims") or ()]
    for field in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(field) or ()):
            path = f"spec.{field}[{at}].resources"
            validate_resource_requirements(container.get("resources") or {}, path, errors, claim_names=claims)
    if errors:
        told = "\n".join(f"{each.field}: {each.message}" for each in errors)
        raise Invalid(f"{manifest.origin}: {name}: {told}", details=Details(name=name, causes=tuple(errors)))
