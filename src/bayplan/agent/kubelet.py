"""The kubelet of this machine: how it is configured, and which cgroups are its own.

It is found by its process; its settings are those of its command line and of the files that it names, read as the
kubelet reads them (`node.configuration`). Where no kubelet runs, the files below /var/lib/kubelet tell how the last one
ran. Paths are read through /proc/PID/root, so that an agent in a container that sees the host's processes finds them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.node.checkpoint.kubelet_cpu import read_cpu_state
from bayplan.node.checkpoint.kubelet_memory import read_memory_state
from bayplan.node.configuration import NodeConfiguration, file_named, read_configuration
from bayplan.node.configuration.flags import written
from bayplan.node.policies import NodePolicies

_ROOT_DIR = "/var/lib/kubelet"
_OWNED = {"kubepods", "kubepods.slice"}


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
    configuration: NodeConfiguration
    config: str = ""
    """Its --config file; "": none."""
    cpu_state: str = ""
    """The policy in its cpu_manager_state; it differs from the configured one after a change without a restart."""
    memory_state: str = ""

    @property
    def policies(self) -> NodePolicies:
        """Its CPU, memory and topology policies."""
        return self.configuration.policies


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
    """The kubelet that runs, or that ran last; None: no trace of one.

    Raises KubeletFileError, NodeConfigurationError, CheckpointError, CorruptCheckpointError.
    """
    for entry in sorted(os.listdir(proc)):
        if entry.isdigit() and (arguments := _command(proc / entry)) is not None:
            return _kubelet(int(entry), arguments, proc / entry / "root")
    if _is_there(_below(root, f"{_ROOT_DIR}/config.yaml")):
        return _kubelet(None, [f"--config={_ROOT_DIR}/config.yaml"], root)
    return None


def _command(process: Path) -> list[str] | None:
    """The arguments of a process that is a kubelet; None for any other. `hyperkube kubelet` counts."""
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        for index in (0, 1):
            if len(words) > index and words[index].rpartition("/")[2] == "kubelet":
                return words[index + 1 :]
    return None


def _kubelet(process: int | None, arguments: Sequence[str], root: Path) -> Kubelet:
    flags, config = dict(written(arguments)), file_named(arguments)
    document = _read_yaml(_below(root, config)) if config else {}
    if "config-dir" in flags:
        for drop_in in sorted(_below(root, flags["config-dir"]).glob("*.conf")):
            document |= _read_yaml(drop_in)
    state = _below(root, flags.get("root-dir", _ROOT_DIR))
    cpus, memory = (_content(state / name) for name in ("cpu_manager_state", "memory_manager_state"))
    return Kubelet(
        process,
        read_configuration(document, arguments, config),
        config,
        read_cpu_state(cpus).policy if cpus else "",
        read_memory_state(memory).policy if memory else "",
    )


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _content(path: Path) -> bytes:
    """A file that may be missing, or be there and hold nothing yet."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as fault:
        raise _unread(path, fault) from fault


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as fault:
        raise _unread(path, fault) from fault


def _unread(path: Path, fault: OSError) -> KubeletFileError:
    hint = "run as root: only it may read the kubelet's files" if isinstance(fault, PermissionError) else ""
    return KubeletFileError(f"the kubelet's {path}: {fault.strerror}", hint=hint)


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as fault:
        raise _unread(path, fault) from fault
    except yaml.YAMLError as fault:
        raise KubeletFileError(f"the kubelet's configuration {path}: {fault}") from fault
    return document if isinstance(document, dict) else {}
