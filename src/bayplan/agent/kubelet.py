"""The kubelet of this machine: which policies it follows, and which cgroups are its own.

It is found by its process, its settings by its command line and its --config file; a flag beats the file, as in the
kubelet. Where no kubelet runs, the files below /var/lib/kubelet tell how the last one ran. Paths are read through
/proc/PID/root, so that an agent in a container that sees the host's processes finds them, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import parse_list

_ROOT_DIR = "/var/lib/kubelet"
_OWNED = {"kubepods", "kubepods.slice"}

# field of KubeletConfiguration: flag of the command line
_FLAGS = {
    "cpuManagerPolicy": "cpu-manager-policy",
    "cpuManagerPolicyOptions": "cpu-manager-policy-options",
    "memoryManagerPolicy": "memory-manager-policy",
    "topologyManagerPolicy": "topology-manager-policy",
    "topologyManagerScope": "topology-manager-scope",
    "topologyManagerPolicyOptions": "topology-manager-policy-options",
    "reservedSystemCPUs": "reserved-cpus",
    "cgroupDriver": "cgroup-driver",
}


class OwnedByKubeletError(PermanentError):
    """A write to a group that the kubelet or the container runtime owns, without being told to."""

    code = "BP-N060"


class KubeletFileError(PermanentError):
    """A file of the kubelet that cannot be read."""

    code = "BP-N061"


class Kubelet(msgspec.Struct, frozen=True):
    """What is known of the kubelet."""

    process: int | None
    """None: it does not run, and has left files."""
    policies: NodePolicies
    cgroup_driver: str
    config: str = ""
    """Its --config file; "": none."""
    cpu_state: str = ""
    """The policy in its cpu_manager_state; it differs from `policies` after a change without a restart."""
    memory_state: str = ""


def owned_by_kubelet(path: str) -> bool:
    """Whether a group is the kubelet's or the runtime's: kubepods, and all below it."""
    return not _OWNED.isdisjoint(path.split("/"))


def may_write(path: str, *, beside_kubelet: bool) -> None:
    """Raise OwnedByKubeletError for a group that is not ours to change, unless told."""
    if owned_by_kubelet(path) and not beside_kubelet:
        raise OwnedByKubeletError(
            f"{path} belongs to the kubelet and the container runtime: nothing is written",
            hint="--beside-kubelet allows it; the kubelet may set its own values again at any time",
        )


def find_kubelet(proc: Path = Path("/proc"), root: Path = Path("/")) -> Kubelet | None:
    """The kubelet that runs, or that ran last; None: no trace of one. Raises KubeletFileError."""
    for entry in sorted(os.listdir(proc)):
        if entry.isdigit() and (arguments := _command(proc / entry)):
            return _kubelet(int(entry), arguments, proc / entry / "root")
    if (root / _ROOT_DIR[1:] / "config.yaml").exists():
        return _kubelet(None, [f"--config={_ROOT_DIR}/config.yaml"], root)
    return None


def _command(process: Path) -> list[str]:
    """The arguments of a process that is a kubelet; [] for any other. `hyperkube kubelet` counts."""
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        for index in (0, 1):
            if len(words) > index and words[index].rpartition("/")[2] == "kubelet":
                return words[index + 1 :]
    return []


def _kubelet(process: int | None, arguments: Sequence[str], root: Path) -> Kubelet:
    flags = _flags(arguments)
    config = flags.get("config", "")
    settings = _read_yaml(root / config.lstrip("/")) if config else {}
    for drop_in in sorted((root / flags["config-dir"].lstrip("/")).glob("*.conf")) if "config-dir" in flags else ():
        settings |= _read_yaml(drop_in)
    settings |= {field: flags[flag] for field, flag in _FLAGS.items() if flag in flags}
    state = root / flags.get("root-dir", _ROOT_DIR).lstrip("/")
    return Kubelet(
        process,
        _policies(settings),
        settings.get("cgroupDriver") or "cgroupfs",
        config,
        _policy_in(state / "cpu_manager_state"),
        _policy_in(state / "memory_manager_state"),
    )


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument.startswith("-"):
            name, equals, value = argument.lstrip("-").partition("=")
            found[name] = value if equals else following
    return found


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as fault:
        raise KubeletFileError(f"the kubelet's configuration {path}: {fault}") from fault
    return document if isinstance(document, dict) else {}


def _policies(settings: Mapping[str, Any]) -> NodePolicies:
    return NodePolicies(
        cpu=settings.get("cpuManagerPolicy") or "none",
        cpu_options=_options(settings.get("cpuManagerPolicyOptions")),
        reserved_cpus=parse_list(settings.get("reservedSystemCPUs") or ""),
        topology=TopologyPolicies(
            settings.get("topologyManagerPolicy") or "none",
            settings.get("topologyManagerScope") or "container",
            _options(settings.get("topologyManagerPolicyOptions")),
        ),
        memory=settings.get("memoryManagerPolicy") or "None",
    )


def _options(value: object) -> dict[str, str]:
    """Options of a policy: a map in the file, `a=b,c=d` on the command line."""
    if isinstance(value, Mapping):
        return {str(name): str(option) for name, option in value.items()}
    pairs = (part.partition("=") for part in str(value or "").split(",") if part)
    return {name.strip(): option.strip() for name, _, option in pairs}


class _State(msgspec.Struct):
    policyName: str = ""  # noqa: N815 - the kubelet's own name


def _policy_in(state: Path) -> str:
    """The policy that a state file was written under; "" where there is none. Raises KubeletFileError."""
    try:
        return msgspec.json.decode(state.read_bytes(), type=_State).policyName
    except FileNotFoundError:
        return ""
    except (OSError, msgspec.DecodeError) as fault:
        raise KubeletFileError(
            f"the kubelet's {state}: {fault}", hint="the kubelet refuses it as well: see its log"
        ) from fault
