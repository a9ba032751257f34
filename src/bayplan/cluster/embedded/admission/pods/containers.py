"""Containers: what every kind of them must have, and what only some kinds may have.

Three lists, three lives. `containers` run together. `initContainers` run one after the other, except sidecars
(restartPolicy Always), which stay and so may have probes and hooks. `ephemeralContainers` are for a person's eyes and
have neither ports nor resources.

Source of truth: pkg/apis/core/validation, validateContainers, validateInitContainers, validateEphemeralContainers, with
the default feature gates of 1.36; pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.env import (
    default_env,
    validate_env,
    validate_env_from,
    validate_file_volumes,
)
from bayplan.cluster.embedded.admission.pods.images import default_pull_policy
from bayplan.cluster.embedded.admission.pods.mounts import validate_mounts
from bayplan.cluster.embedded.admission.pods.ports import (
    validate_host_network_ports,
    validate_host_ports,
    validate_ports,
)
from bayplan.cluster.embedded.admission.pods.probes import (
    PROBES,
    default_lifecycle,
    default_probe,
    validate_lifecycle,
    validate_probes,
)
from bayplan.cluster.embedded.admission.pods.resources import default_resources, validate_resource_requirements
from bayplan.cluster.embedded.admission.pods.restarts import (
    is_sidecar,
    validate_resize_policy,
    validate_restart_policy,
)
from bayplan.cluster.embedded.admission.pods.security import validate_security_context
from bayplan.cluster.embedded.admission.syntax import dns1123_label

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_NOT_EPHEMERAL = ("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "lifecycle", *PROBES)


class _Pod(NamedTuple):
    """What a container's rules ask of its pod."""

    volumes: Mapping[str, Doc]
    good_volumes: Mapping[str, Doc]
    claim_names: Collection[str]
    restart_policy: str
    host_users: bool
    grace: int | None
    template: bool


def validate_containers(spec: Doc, path: str, errors: Errors, *, template: bool, volumes: Sequence[Doc]) -> None:
    """All containers of a pod spec; `path` is the spec's.

    `volumes` are the spec's volumes without fault: a mount of another one finds nothing.
    """
    pod = _Pod(
        volumes={volume.get("name", ""): volume for volume in spec.get("volumes", ())},
        good_volumes={volume["name"]: volume for volume in volumes},
        claim_names={claim["name"] for claim in spec.get("resourceClaims", ()) if claim.get("name")},
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers") is not False,
        grace=spec.get("terminationGracePeriodSeconds"),
        template=template,
    )
    containers: Sequence[Doc] = spec.get("containers") or ()  # null when the list was left out
    _validate_regular(containers, f"{path}.containers", errors, pod)
    names = {container.get("name", "") for container in containers}
    _validate_init(spec.get("initContainers", ()), f"{path}.initContainers", errors, pod, names)
    _validate_ephemeral(spec.get("ephemeralContainers", ()), f"{path}.ephemeralContainers", errors, pod, names)
    if spec.get("hostNetwork"):
        validate_host_network_ports(containers, f"{path}.containers", errors, template=template)


def _validate_regular(containers: Sequence[Doc], path: str, errors: Errors, pod: _Pod) -> None:
    if not containers:
        errors.required(path)
    names: set[str] = set()
    for i, container in enumerate(containers):
        place = f"{path}[{i}]"
        _validate_common(container, place, errors, pod, trimmed=not pod.template)
        name = container.get("name", "")
        if name in names:
            errors.duplicate(f"{place}.name", name)
        names.add(name)
        _validate_running(container, place, errors, pod)
        validate_restart_policy(container, place, errors)
    validate_host_ports(containers, path, errors)


def _validate_init(containers: Sequence[Doc], path: str, errors: Errors, pod: _Pod, names: set[str]) -> None:
    """`names` are taken already; those of the init containers are added."""
    for i, container in enumerate(containers):
        place = f"{path}[{i}]"
        _validate_common(container, place, errors, pod, trimmed=not pod.template)
        validate_restart_policy(container, place, errors)
        name = container.get("name", "")
        if name in names:
            errors.duplicate(f"{place}.name", name)
        elif name:
            names.add(name)
        # One by one, since they run one by one; upstream therefore always names the first.
        validate_host_ports([container], path, errors)
        if is_sidecar(container):
            _validate_running(container, place, errors, pod)
        else:
            _validate_finishing(container, place, errors)


def _validate_running(container: Doc, path: str, errors: Errors, pod: _Pod) -> None:
    """What containers may have that run as long as the pod."""
    if "lifecycle" in container:
        validate_lifecycle(container["lifecycle"], f"{path}.lifecycle", errors, grace=pod.grace)
    validate_probes(container, path, errors)


def _validate_finishing(container: Doc, path: str, errors: Errors) -> None:
    """What an init container may not have unless it is a sidecar."""
    for field in ("lifecycle", *PROBES):
        if field in container:
            errors.forbidden(f"{path}.{field}", "may not be set for init containers without restartPolicy=Always")
    for j, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == "RestartContainer":
            errors.invalid(
                f"{path}.resizePolicy[{j}].restartPolicy",
                "RestartContainer",
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            )


def _validate_ephemeral(containers: Sequence[Doc], path: str, errors: Errors, pod: _Pod, targets: set[str]) -> None:
    """`targets` are the names of the pod's other containers, which a debugger may look into."""
    names = set(targets)
    for i, container in enumerate(containers):
        place = f"{path}[{i}]"
        _validate_common(container, place, errors, pod, trimmed=True)
        name = container.get("name", "")
        if name in names:
            errors.duplicate(f"{place}.name", name)
        names.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            errors.not_found(f"{place}.targetContainerName", target)
        given = container.keys() if container.get("resources") else container.keys() - {"resources"}
        unwanted = [field for field in _NOT_EPHEMERAL if field in given]
        mounts = enumerate(container.get("volumeMounts", ()))
        unwanted += [f"volumeMounts[{j}].{sub}" for j, m in mounts for sub in ("subPath", "subPathExpr") if m.get(sub)]
        for field in unwanted:
            errors.forbidden(f"{place}.{field}", "cannot be set for an Ephemeral Container")


def _validate_common(container: Doc, path: str, errors: Errors, pod: _Pod, *, trimmed: bool) -> None:
    """What holds for containers of every kind. `trimmed`: the image may not begin or end with whitespace."""
    _validate_identity(container, path, errors, trimmed=trimmed)
    message_policy = container.get("terminationMessagePolicy", "")
    _validate_choice(message_policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy", errors)
    validate_pull_policy(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy", errors)
    if "ports" in container:
        validate_ports(container["ports"], f"{path}.ports", errors)
    if "env" in container:
        validate_env(container["env"], f"{path}.env", errors)
        validate_file_volumes(container["env"], pod.volumes, f"{path}.env", errors)
    if "envFrom" in container:
        validate_env_from(container["envFrom"], f"{path}.envFrom", errors)
    validate_mounts(container, pod.good_volumes, path, errors)
    if resources := container.get("resources"):
        validate_resource_requirements(resources, f"{path}.resources", errors, claim_names=pod.claim_names)
    if "resizePolicy" in container:
        policies = container["resizePolicy"]
        validate_resize_policy(policies, f"{path}.resizePolicy", errors, pod_restart_policy=pod.restart_policy)
    if "securityContext" in container:
        context = container["securityContext"]
        validate_security_context(context, f"{path}.securityContext", errors, host_users=pod.host_users)


def _validate_identity(container: Doc, path: str, errors: Errors, *, trimmed: bool) -> None:
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        errors.required(f"{path}.name")
    else:
        for fault in dns1123_label(name):
            errors.invalid(f"{path}.name", name, fault)
    if not image:
        errors.required(f"{path}.image")
    elif trimmed and image != image.strip():
        errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def validate_pull_policy(policy: str, path: str, errors: Errors) -> None:
    """When to pull an image, of a container or of a volume."""
    _validate_choice(policy, _PULL_POLICIES, path, errors)


def _validate_choice(value: str, allowed: Sequence[str], path: str, errors: Errors) -> None:
    if not value:
        errors.required(path)
    elif value not in allowed:
        errors.not_supported(path, value, allowed)


def default_container(container: Doc, *, template: bool) -> None:
    """Complete a container in place. Ephemeral ones count as `template`: their limits are no requests."""
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    if "env" in container:
        default_env(container["env"])
    if resources := container.get("resources"):
        default_resources(resources, template=template)
    for kind in PROBES:
        if kind in container:
            default_probe(container[kind])
    if "lifecycle" in container:
        default_lifecycle(container)
