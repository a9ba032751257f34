"""A pod: where it is, how it is, what its containers ask for and do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.cli.describe.page import NONE, Doc, Page, Pairs, Value, conditions, events, head, mapping, moment
from bayplan.cluster.tables.columns import at
from bayplan.cluster.tables.pods import pod_status


def pod_page(pod: Doc, gpus: str, found: Sequence[Doc], page: Page) -> None:
    """The page of a pod; `gpus` is what it asks for."""
    page.pairs([*head(pod, page.now), *_facts(pod, gpus, page)])
    for name, specs, statuses in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
    ):
        if at(pod, f"spec.{specs}"):
            page.heading(name)
        known = {each["name"]: each for each in at(pod, f"status.{statuses}") or ()}
        for container in at(pod, f"spec.{specs}") or ():
            page.heading(container["name"], 2)
            page.pairs([*template_facts(container), *_state_facts(known.get(container["name"]), page)], 4)
    conditions(page, pod)
    page.pairs(placement_facts(pod.get("spec") or {}))
    events(page, found)


def _facts(pod: Doc, gpus: str, page: Page) -> Pairs:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    priority = spec.get("priorityClassName")
    node = spec.get("nodeName") or NONE
    return [
        ("Priority", f"{spec.get('priority', 0)}{f' ({priority})' if priority else ''}"),
        ("Service Account", spec.get("serviceAccountName") or "default"),
        ("Node", f"{node}/{status['hostIP']}" if status.get("hostIP") else node),
        ("Start Time", moment(status.get("startTime"), page.now) if status.get("startTime") else None),
        ("Status", pod_status(pod, page.now)),
        ("Reason", status.get("reason")),
        ("Message", status.get("message")),
        ("IPs", [each["ip"] for each in status.get("podIPs") or ()]),
        ("Nominated Node", status.get("nominatedNodeName")),
        ("QoS Class", status.get("qosClass")),
        ("GPUs", gpus),
    ]


def template_facts(container: Doc) -> Pairs:
    """What a container is told to be."""
    resources = container.get("resources") or {}
    ports = [f"{each['containerPort']}/{each.get('protocol', 'TCP')}" for each in container.get("ports") or ()]
    mounts = [
        f"{each['mountPath']} from {each['name']} ({'ro' if each.get('readOnly') else 'rw'})"
        for each in container.get("volumeMounts") or ()
    ]
    probes = (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe"))
    return [
        ("Image", container.get("image", "")),
        ("Ports", ", ".join(ports) or None),
        ("Command", container.get("command") or None),
        ("Args", container.get("args") or None),
        ("Requests", mapping(resources.get("requests"), ": ") or None),
        ("Limits", mapping(resources.get("limits"), ": ") or None),
        *((name, _probe(container[key]) if container.get(key) else None) for name, key in probes),
        ("Environment", [*_environment(container)] or None),
        ("Mounts", mounts or None),
    ]


def _probe(probe: Doc) -> str:
    handler = next((key for key in ("exec", "httpGet", "tcpSocket", "grpc") if key in probe), "unknown")
    times = {"delay": "initialDelaySeconds", "timeout": "timeoutSeconds", "period": "periodSeconds"}
    return " ".join([handler, *(f"{short}={probe.get(key, 0)}s" for short, key in times.items())])


def _environment(container: Doc) -> Iterator[str]:
    for each in container.get("envFrom") or ():
        kind = next((key for key in ("configMapRef", "secretRef") if key in each), "")
        yield f"all of {kind.removesuffix('Ref')} {(each.get(kind) or {}).get('name', '')}"
    for each in container.get("env") or ():
        source = each.get("valueFrom")
        if source is None:
            yield f"{each['name']}: {each.get('value', '')}"
        else:  # never the value: it may be a secret
            kind, reference = next(iter(source.items()))
            what = reference.get("fieldPath") or reference.get("resource") or reference.get("key", "")
            yield f"{each['name']}: {kind.removesuffix('Ref')} {' '.join(filter(None, (reference.get('name'), what)))}"


def _state_facts(status: Doc | None, page: Page) -> Pairs:
    if status is None:
        return [("State", "Waiting")]
    return [
        ("State", _state(status.get("state") or {}, page)),
        ("Last State", _state(status["lastState"], page) if status.get("lastState") else None),
        ("Ready", str(bool(status.get("ready")))),
        ("Restart Count", status.get("restartCount", 0)),
    ]


def _state(state: Doc, page: Page) -> Value:
    if running := state.get("running"):
        return ["Running", f"since {moment(running.get('startedAt'), page.now)}"]
    if ended := state.get("terminated"):
        code, reason = ended.get("exitCode", 0), ended.get("reason", "")
        span = f"{ended.get('startedAt') or '<unset>'} to {moment(ended.get('finishedAt'), page.now)}"
        message = ended.get("message")
        return [f"Terminated: {reason}, exit code {code}", span, *([message.strip()] if message else [])]
    waiting = state.get("waiting") or {}
    return [": ".join(filter(None, ("Waiting", waiting.get("reason")))), *filter(None, [waiting.get("message")])]


def placement_facts(spec: Doc) -> Pairs:
    """Where a pod may go, and what is mounted into it."""
    return [
        ("Volumes", [*map(_volume, spec.get("volumes") or ())]),
        ("Node-Selectors", mapping(spec.get("nodeSelector"))),
        ("Affinity", ", ".join(sorted(spec.get("affinity") or ())) or None),
        ("Tolerations", [*map(_toleration, spec.get("tolerations") or ())]),
        ("Topology Spread", [*map(_spread, spec.get("topologySpreadConstraints") or ())] or None),
    ]


def _volume(volume: Doc) -> str:
    kind = next((key for key in volume if key != "name"), "emptyDir")
    source = volume.get(kind) or {}
    what = source.get("claimName") or source.get("secretName") or source.get("name") or source.get("path") or ""
    return " ".join(filter(None, (f"{volume['name']}:", kind, what)))


def _toleration(toleration: Doc) -> str:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    exists = toleration.get("operator") == "Exists"
    text = (f"{key}=*" if exists else f"{key}={value}") if key else "everything"
    effect, seconds = toleration.get("effect"), toleration.get("tolerationSeconds")
    return f"{text}{f':{effect}' if effect else ''}{f' for {seconds}s' if seconds is not None else ''}"


def _spread(constraint: Doc) -> str:
    return f"{constraint['topologyKey']}: skew {constraint['maxSkew']}, else {constraint['whenUnsatisfiable']}"
