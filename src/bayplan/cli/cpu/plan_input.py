"""What `cpu plan` and `cpu explain` work on: pods from files, a machine, and how its kubelet is set, in its own flags.

A kubelet's default policy is none, under which there is nothing to plan. So without a kubelet's file the policy static
is assumed where none is named, and what it cannot do without; what was assumed is said. With a file, it is as it says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli.cpu.kubelet_file import read_kubelet_file
from bayplan.cli.cpu.machine_option import chosen_machine, machine_option

if TYPE_CHECKING:
    from bayplan.node.admission import Remembered
    from bayplan.node.configuration import NodeConfiguration
    from bayplan.node.machine import Machine
    from bayplan.node.plan import Plan

# flag: (metavar, what help says)
KUBELET_FLAGS = {
    "cpu-manager-policy": ("POLICY", "none or static."),
    "cpu-manager-policy-options": ("NAME=VALUE", "One option of the policy; repeatable."),
    "topology-manager-policy": ("POLICY", "none, best-effort, restricted or single-numa-node."),
    "topology-manager-scope": ("SCOPE", "container or pod."),
    "topology-manager-policy-options": ("NAME=VALUE,...", "Options of the policy."),
    "memory-manager-policy": ("POLICY", "None or Static."),
    "reserved-memory": ("NODE:TYPE=AMOUNT,...", "Memory kept for the system on a NUMA node; repeatable."),
    "system-reserved": ("NAME=AMOUNT,...", "Kept for the system: cpu=500m,memory=1Gi."),
    "kube-reserved": ("NAME=AMOUNT,...", "Kept for Kubernetes' own processes."),
    "reserved-cpus": ("CPUS", "The CPUs kept for the system: 0-1,64-65."),
    "eviction-hard": ("SIGNAL<AMOUNT,...", "Thresholds of eviction, which are kept too."),
}
_POLICY, _MEMORY = "--cpu-manager-policy", "--reserved-memory"
_KEEPS_CPUS = ("system-reserved", "kube-reserved", "reserved-cpus")


class Wish(msgspec.Struct, frozen=True):
    """What the command line says."""

    files: tuple[str, ...]
    machine: str | None
    kubelet_config: str | None
    state: str | None
    flags: dict[str, tuple[str, ...]]

    @property
    def arguments(self) -> list[str]:
        """The kubelet's flags as on its own command line."""
        return [f"--{name}={value}" for name, values in self.flags.items() for value in values]


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what to say beside it."""

    plan: Plan
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags; `wish` makes one of what it gets."""
    for name, (metavar, text) in reversed(KUBELET_FLAGS.items()):
        names = [f"--{name}"] + (["--reserved-system-cpus"] if name == "reserved-cpus" else [])
        command = click.option(*names, name.replace("-", "_"), multiple=True, metavar=metavar, help=text)(command)
    for option in (
        click.option("--state", metavar="FILE", help="Start from a kubelet's cpu_manager_state."),
        click.option("--kubelet-config", metavar="FILE", help="A KubeletConfiguration; flags win over it."),
        machine_option,
        click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Pods and what makes them."),
    ):
        command = option(command)
    return command


def wish(files: tuple[str, ...], machine: str | None, given: dict[str, Any]) -> Wish:
    """The flags as one value. Raises UsageError without a file."""
    if not files:
        raise click.UsageError("expected -f FILE with pods; - for standard input")
    if machine == "-" and "-" in files:
        raise click.UsageError("standard input is one file: expected - for the pods or for the machine, not for both")
    flags = {name: given.pop(name.replace("-", "_")) for name in KUBELET_FLAGS}
    return Wish(files, machine, flags=flags, **given)


def planned(wanted: Wish) -> Planned:
    """Read everything and make the plan. Raises PermanentError of many kinds, OSError."""
    from bayplan.cli.cpu.pod_files import read_pods
    from bayplan.node.errors import StateError
    from bayplan.node.plan import candidate, make_plan

    found = read_pods(wanted.files)
    machine = chosen_machine(wanted.machine)
    configuration, assumed = _settings(wanted, machine)
    start = None if wanted.state is None else _start(wanted.state, configuration)
    try:
        plan = make_plan(machine, configuration, map(candidate, found.pods), start)
    except StateError as wrong:
        raise StateError(f"{wanted.state}: {wrong.message}", hint=wrong.hint) from wrong
    return Planned(plan, assumed, tuple(_notes(plan, found.passed_over, configuration, wanted)))


def _notes(plan: Plan, passed: tuple[str, ...], configuration: NodeConfiguration, wanted: Wish) -> list[str]:
    notes = [f"passed over, no pods of theirs: {', '.join(passed)}"] if passed else []
    if configuration.policies.cpu == "none":
        notes.append(f"the CPU manager's policy is none, so nothing is exclusive; {_POLICY}=static shows what would be")
    if wanted.state is not None and (configuration.policies.memory == "Static" or plan.machine.devices):
        notes.append(
            "a cpu_manager_state says nothing of memory and devices: what its pods hold of them counts as free"
        )
    has = {device.resource for device in plan.machine.devices}
    asked = {name for each in plan.outcomes for need in each.candidate.need.containers for name in need.devices}
    if missing := sorted(asked - has):
        notes.append(f"the machine has no {', '.join(missing)}: a scheduler would not send such pods there")
    return notes


def _settings(wanted: Wish, machine: Machine) -> tuple[NodeConfiguration, tuple[str, ...]]:
    if wanted.kubelet_config is not None:
        return read_kubelet_file(Path(wanted.kubelet_config), wanted.arguments), ()
    from bayplan.node.configuration import read_configuration

    assumed = []
    if not wanted.flags["cpu-manager-policy"]:
        assumed.append(f"{_POLICY}=static")
    found = read_configuration(arguments=[*wanted.arguments, *assumed])
    if found.policies.cpu == "static" and not any(wanted.flags[name] for name in _KEEPS_CPUS):
        assumed.append("--system-reserved=cpu=1")
    if found.policies.memory == "Static" and not wanted.flags["reserved-memory"]:
        assumed += _memory_to_keep(read_configuration(arguments=[*wanted.arguments, *assumed]), machine)
    return read_configuration(arguments=[*wanted.arguments, *assumed]), tuple(assumed)


def _memory_to_keep(found: NodeConfiguration, machine: Machine) -> list[str]:
    """The kubelet wants told on which NUMA nodes lies what it keeps: on the first one."""
    from bayplan.model.quantity import Format, Quantity
    from bayplan.model.resources import MEMORY
    from bayplan.node.reservations import divide

    unmanaged = msgspec.structs.replace(found, policies=msgspec.structs.replace(found.policies, memory="None"))
    kept = divide(unmanaged, machine).reserved.get(MEMORY, 0)
    text = Quantity.whole(kept, Format.BINARY_SI)
    return [f"{_MEMORY}={machine.nodes[0].id}:memory={text}"] if kept and machine.nodes else []


def _start(state: str, configuration: NodeConfiguration) -> Remembered:
    """What a kubelet's node holds, its checksum verified. Raises CheckpointError, StateError, OSError."""
    from bayplan.node.admission import Remembered
    from bayplan.node.checkpoint.kubelet_cpu import read_cpu_state, to_start_from
    from bayplan.node.errors import StateError

    read = read_cpu_state(Path(state).read_bytes(), state)
    policy = configuration.policies.cpu
    if read.policy != policy:
        raise StateError(
            f'{state}: configured policy "{policy}" differs from state checkpoint policy "{read.policy}"',
            hint=f"{_POLICY}={read.policy} is what the file was written under",
        )
    return Remembered(cpu=to_start_from(read, state))
