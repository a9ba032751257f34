"""The names of kubelet's groups: pod and container to path and back, for both cgroup drivers.

    cgroupfs /kubepods/burstable/pod<uid>/<id>
    systemd /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid, - is _>.slice/cri-containerd-<id>.scope

Guaranteed pods have no class level. With `--cgroup-root` its names come first; systemd's slices then carry them as a
prefix. Source: kubelet 1.36, cm/cgroup_manager_linux.go and cm/pod_container_manager_linux.go. A static pod goes by the
hash of its manifest (32 digits, no dashes), not by the uid of its mirror in the API server.
"""

from __future__ import annotations

import enum
import re

import msgspec

from bayplan.model.errors import PermanentError


class BadNameError(PermanentError):
    """A pod, container or cgroup root that kubelet could not have named a group after."""

    code = "BP-N034"


class Driver(enum.StrEnum):
    """Who makes the groups (kubelet's --cgroup-driver)."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


class Qos(enum.StrEnum):
    """The class of a pod, as the API writes it."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Runtime(enum.StrEnum):
    """Who made a container's group; the value is systemd's prefix of its scope."""

    CONTAINERD = "cri-containerd"
    CRIO = "crio"
    DOCKER = "docker"


class GroupName(msgspec.Struct, frozen=True):
    """Whose group it is: a container's, a pod's (no container), a class's (no pod), or all pods' (Guaranteed, no pod).

    With driver cgroupfs, containerd and docker name containers alike: such a path is read as containerd's.
    """

    qos: Qos
    pod_uid: str = ""
    container_id: str = ""
    runtime: Runtime | None = None
    root: tuple[str, ...] = ()


CLASS_LEVELS = {Qos.GUARANTEED: (), Qos.BURSTABLE: ("burstable",), Qos.BEST_EFFORT: ("besteffort",)}
POD_UID = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z.-]*")
CONTAINER_ID = re.compile(r"[0-9a-zA-Z]+")
ROOT_PART = re.compile(r"[0-9a-zA-Z.][0-9a-zA-Z.-]*")
SCOPE = re.compile(rf"(?P<runtime>{'|'.join(Runtime)})-(?P<id>{CONTAINER_ID.pattern})\.scope")


def path_of(name: GroupName, driver: Driver) -> str:
    """The path of a group from the hierarchy's root. Raises BadNameError."""
    _check(name)
    parts = [*name.root, "kubepods", *CLASS_LEVELS[name.qos]]
    if name.pod_uid:
        parts.append(f"pod{name.pod_uid}")
    path = "/" + "/".join(parts) if driver is Driver.CGROUPFS else _slices(parts)
    return f"{path}/{_container(name, driver)}" if name.container_id else path


def _check(name: GroupName) -> None:
    wrong = [part for part in name.root if not ROOT_PART.fullmatch(part) or part in (".", "..", "kubepods")]
    if name.pod_uid and not POD_UID.fullmatch(name.pod_uid):
        wrong.append(name.pod_uid)
    if name.container_id and not (name.pod_uid and name.runtime and CONTAINER_ID.fullmatch(name.container_id)):
        wrong.append(name.container_id)
    if wrong:
        raise BadNameError(
            f'no group can be named after "{wrong[0]}"',
            hint="letters, digits, dots and dashes only; a container needs its pod and its runtime",
        )


def _slices(parts: list[str]) -> str:
    """systemd's way: each level carries the names above it."""
    escaped = [part.replace("-", "_") for part in parts]
    return "".join("/" + "-".join(escaped[: depth + 1]) + ".slice" for depth in range(len(escaped)))


def _container(name: GroupName, driver: Driver) -> str:
    if driver is Driver.SYSTEMD:
        return f"{name.runtime}-{name.container_id}.scope"
    return f"crio-{name.container_id}" if name.runtime is Runtime.CRIO else name.container_id


def parse(path: str) -> GroupName | None:
    """Whose group a path is, whatever the driver; None: not one of kubelet's, or something inside a container."""
    parts = path.strip("/").split("/")
    slices = [part for part in parts if part.endswith(".slice")]
    return _parse_systemd(parts, slices) if slices else _parse_cgroupfs(parts)


def _parse_systemd(parts: list[str], slices: list[str]) -> GroupName | None:
    levels = slices[-1].removesuffix(".slice").split("-")
    if parts[: len(slices)] != slices or "/" + "/".join(slices) != _slices(levels):
        return None
    rest = parts[len(slices) :]
    found = SCOPE.fullmatch(rest[0]) if len(rest) == 1 else None
    if rest and not found:
        return None
    container = (found["id"], Runtime(found["runtime"])) if found else None
    return _named([level.replace("_", "-") for level in levels], container)


def _parse_cgroupfs(parts: list[str]) -> GroupName | None:
    container = None
    if len(parts) > 1 and POD_LEVEL.fullmatch(parts[-2]):
        crio = parts[-1].startswith("crio-")
        container = (parts[-1].removeprefix("crio-"), Runtime.CRIO if crio else Runtime.CONTAINERD)
        if not CONTAINER_ID.fullmatch(container[0]):
            return None
        parts = parts[:-1]
    return _named(parts, container)


POD_LEVEL = re.compile(rf"pod({POD_UID.pattern})")


def _named(levels: list[str], container: tuple[str, Runtime] | None) -> GroupName | None:
    if "kubepods" not in levels:
        return None
    top = levels.index("kubepods")
    below = levels[top + 1 :]
    qos = next((each for each, level in CLASS_LEVELS.items() if level and level == tuple(below[:1])), Qos.GUARANTEED)
    below = below[len(CLASS_LEVELS[qos]) :]
    pod = POD_LEVEL.fullmatch(below[0]) if len(below) == 1 else None
    if (below and pod is None) or (container and pod is None):
        return None
    container_id, runtime = container or ("", None)
    return GroupName(qos, pod[1] if pod else "", container_id, runtime, tuple(levels[:top]))
