"""A machine read from the kernel's files: any that Linux could present, this one, and files that make no sense."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from bayplan.node.discovery import DiscoveryError, Disturbance, NoNumaError, discover, disturbances, write_tree
from bayplan.node.discovery.interrupts import Kind
from bayplan.node.machine import Cpu, Device, Machine, NumaNode, Topology
from bayplan.node.machines import named
from bayplan.node.sets import mask_of
from tests.node.random_machines import machines

PACKAGE = "topology/physical_package_id"
CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"


@settings(max_examples=6, deadline=None)
@given(machine=machines())
def test_what_is_written_is_discovered(machine: Machine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_tree(machine, Path(folder))
        assert discover(Path(folder)) == machine


@pytest.mark.parametrize("name", ["ac922", "core-i9-12900k", "dgx-a100", "gh200", "xeon-6248-2s-alternating"])
def test_a_real_shape_is_discovered(name: str, tmp_path: Path) -> None:
    machine = msgspec.structs.replace(named(name), description="one line")
    write_tree(machine, tmp_path)
    found = discover(tmp_path)
    assert sorted(found.devices, key=lambda device: device.id) == [*machine.devices]
    assert found == msgspec.structs.replace(machine, devices=found.devices)


def test_this_machine_is_what_lscpu_says() -> None:
    topology = discover().topology
    assert os.sched_getaffinity(0) <= {*topology.by_id}
    if shutil.which("lscpu") is None:
        pytest.skip("no lscpu here")
    told = subprocess.run(["lscpu", "-p=CPU,CORE,SOCKET,NODE"], capture_output=True, text=True, check=True).stdout
    rows = [[int(cell or 0) for cell in line.split(",")] for line in told.splitlines() if not line.startswith("#")]
    assert [cpu.id for cpu in topology.cpus] == [row[0] for row in rows]
    for column, groups in ((1, topology.cores), (2, topology.sockets), (3, topology.nodes)):
        theirs: dict[int, int] = {}
        for row in rows:
            theirs[row[column]] = theirs.get(row[column], 0) | 1 << row[0]
        assert sorted(groups.values()) == sorted(theirs.values())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two sockets of two cores with two threads each, CPU 7 switched off."""
    cpus = [Cpu(cpu, cpu % 4, cpu % 4 // 2, cpu % 4 // 2, cpu % 4 // 2) for cpu in range(7)]
    nodes = [NumaNode(node, 2**30, {2048: 4}, {node: 10, 1 - node: 21}) for node in (0, 1)]
    write_tree(Machine("m", Topology(tuple(cpus)), tuple(nodes), offline=1 << 7), tmp_path)
    return tmp_path


def _put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        pytest.param(f"{CPUS}/online", "0-x", 'expected a list such as 0-3,8, not "0-x"', id="a list that is none"),
        pytest.param(f"{CPUS}/online", "", 'expected at least one CPU, not ""', id="no CPU is online"),
        pytest.param(f"{CPUS}/cpu1/{PACKAGE}", "one", "a whole number", id="a socket that is a word"),
        pytest.param(f"{CPUS}/cpu1/{PACKAGE}", "-1", "the number of a socket", id="a socket some CPUs lack"),
        pytest.param(
            f"{CPUS}/cpu0/topology/thread_siblings_list",
            "4",
            "CPU 0 itself in it",
            id="a CPU not its own sibling",
        ),
        pytest.param(
            f"{CPUS}/cpu0/topology/thread_siblings_list", "0-1,4", "as CPU 0 says", id="siblings that do not agree"
        ),
        pytest.param(f"{CPUS}/cpu4/{PACKAGE}", "1", "CPUs of one socket", id="a core in two sockets"),
        pytest.param(f"{CPUS}/cpu0/cache/index3/shared_cpu_list", "0", "CPUs that share L3 0", id="an L3 in two minds"),
        pytest.param(f"{NODES}/node1/cpulist", "1-3,6", "CPUs that node 0 has not", id="a CPU in two NUMA nodes"),
        pytest.param(f"{NODES}/node1/cpulist", "2", "CPUs 3,6 as well", id="a CPU in no NUMA node"),
        pytest.param(f"{NODES}/node0/distance", "10", "2 distances, to nodes 0-1", id="a distance is missing"),
        pytest.param(f"{NODES}/node0/meminfo", "Node 0 MemFree: 5 kB", "a line MemTotal", id="memory without a total"),
    ],
)
def test_what_makes_no_sense_is_refused_with_file_and_content(root: Path, path: str, text: str, expected: str) -> None:
    _put(root, path, text)
    with pytest.raises(DiscoveryError) as caught:
        discover(root)
    assert expected in caught.value.message
    assert str(root) in caught.value.message


def test_a_missing_file_is_named(root: Path) -> None:
    (root / f"{CPUS}/cpu2/topology/thread_siblings_list").unlink()
    with pytest.raises(DiscoveryError, match=r"cpu2/topology/thread_siblings_list: No such file"):
        discover(root)


def test_without_numa_one_socket_is_one_node(tmp_path: Path) -> None:
    cpus = tuple(Cpu(cpu, cpu, 3, 0, 0) for cpu in range(2))
    write_tree(Machine("m", Topology(cpus), ()), tmp_path)
    _put(tmp_path, "proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n")
    _put(tmp_path, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "5")
    found = discover(tmp_path)
    assert found.nodes == (NumaNode(3, 2**21, {2048: 5}, {3: 10}),)
    assert found.topology.nodes == {3: 0b11}


def test_without_numa_several_sockets_are_refused_with_their_number(root: Path) -> None:
    shutil.rmtree(root / NODES)
    with pytest.raises(NoNumaError, match="no NUMA nodes, and 2 sockets"):
        discover(root)


def test_without_any_l3_the_socket_stands_for_it(root: Path) -> None:
    for cpu in range(7):
        shutil.rmtree(root / f"{CPUS}/cpu{cpu}/cache")
    assert discover(root).topology.caches == discover(root).topology.sockets


def test_cpus_without_an_l3_among_others_are_a_group_of_their_own(root: Path) -> None:
    for cpu in (0, 4):
        shutil.rmtree(root / f"{CPUS}/cpu{cpu}/cache")
        _put(root, f"{CPUS}/cpu{cpu}/cache/index2/level", "2")
    for cpu in (1, 5):
        _put(root, f"{CPUS}/cpu{cpu}/cache/index3/shared_cpu_list", "1,5")
    assert discover(root).topology.caches == {0: mask_of((1, 5)), 1: mask_of((2, 3, 6)), 2: mask_of((0, 4))}


def test_an_l3_without_an_id_is_named_after_its_lowest_cpu(root: Path) -> None:
    for cpu in range(7):
        (root / f"{CPUS}/cpu{cpu}/cache/index3/id").unlink()
    assert [*discover(root).topology.caches] == [0, 2]


def test_firmware_that_names_no_socket_has_one(root: Path) -> None:
    for cpu in range(7):
        _put(root, f"{CPUS}/cpu{cpu}/{PACKAGE}", "-1")
    assert [*discover(root).topology.sockets] == [0]


def test_gpus_are_found_and_service_processors_are_not(root: Path) -> None:
    for address, vendor, node in (("01", "0x10de", "1"), ("02", "0x1a03", "0"), ("03", "0x1002", "-1")):
        _put(root, f"sys/bus/pci/devices/0000:{address}:00.0/class", "0x030000")
        _put(root, f"sys/bus/pci/devices/0000:{address}:00.0/vendor", vendor)
        _put(root, f"sys/bus/pci/devices/0000:{address}:00.0/numa_node", node)
    _put(root, "sys/bus/pci/devices/0000:04:00.0/class", "0x020000")
    expected = (Device("nvidia.com/gpu", "0000:01:00.0", 0b10), Device("amd.com/gpu", "0000:03:00.0"))
    assert discover(root).devices == expected
    _put(root, "sys/bus/pci/devices/0000:01:00.0/numa_node", "5")
    with pytest.raises(DiscoveryError, match='a NUMA node of this machine, not "5"'):
        discover(root)


def _irq(root: Path, number: int, allowed: str, effective: str | None) -> None:
    _put(root, f"proc/irq/{number}/smp_affinity_list", allowed)
    if effective is not None:
        _put(root, f"proc/irq/{number}/effective_affinity_list", effective)


def _task(root: Path, pid: int, name: str, *, flags: int, last: int, allowed: str) -> None:
    fields = ["S", *["0"] * 5, str(flags), *["0"] * 29, str(last), *["0"] * 13]
    _put(root, f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(fields)}\n")
    _put(root, f"proc/{pid}/status", f"Name:\t{name}\nCpus_allowed_list:\t{allowed}\n")


@pytest.fixture
def busy(root: Path) -> Path:
    """Interrupts and threads on the CPUs of `root`."""
    _put(
        root,
        "proc/interrupts",
        "            CPU0  CPU1  CPU2  CPU3  CPU4  CPU5  CPU6\n"
        "  8:           0     5    70     0     0     0     0  IO-APIC   8-edge      rtc0\n"
        " 24:           1     2     3     4     5     6     7  PCI-MSI 1-edge      eth0-rx\n"
        "NMI:           1     2     3     4     5     6     7   Non-maskable interrupts\n",
    )
    _irq(root, 8, "0-6", "2")
    _irq(root, 9, "0-6", "2")
    _irq(root, 24, "3-4", None)
    thread, bound = 0x00200040, 0x04200040
    _task(root, 2, "kthreadd", flags=thread, last=0, allowed="0-6")
    _task(root, 20, "ksoftirqd/2", flags=bound, last=2, allowed="2")
    _task(root, 21, "odd (name) 3", flags=thread, last=0, allowed="0,2")
    _task(root, 30, "bash", flags=0x400000, last=2, allowed="0-6")
    _put(root, "proc/40/cmdline", "ended while we looked")
    return root


def test_what_runs_on_given_cpus_is_listed(busy: Path) -> None:
    assert disturbances(mask_of((2, 3)), busy) == (
        Disturbance(Kind.INTERRUPT, 8, "IO-APIC 8-edge rtc0", mask_of(range(7)), 1 << 2, 70),
        Disturbance(Kind.INTERRUPT, 24, "PCI-MSI 1-edge eth0-rx", mask_of((3, 4)), mask_of((3, 4)), 7),
        Disturbance(Kind.THREAD, 20, "ksoftirqd/2", 1 << 2, 1 << 2, movable=False),
        Disturbance(Kind.THREAD, 21, "odd (name) 3", mask_of((0, 2)), 1 << 0),
    )


def test_nothing_is_listed_for_a_quiet_cpu(busy: Path) -> None:
    assert disturbances(1 << 5, busy) == ()


def test_a_cpu_that_is_not_online_is_refused(busy: Path) -> None:
    with pytest.raises(DiscoveryError, match="CPU 7 is not online; 0-6 are"):
        disturbances(1 << 7, busy)


def test_this_machine_is_disturbed_by_its_own_kernel_threads() -> None:
    lowest = discover().topology.cpus[0].id
    if not Path("/proc/irq").exists():
        pytest.skip("no interrupts to be seen here")
    names_found = [each.name for each in disturbances(1 << lowest)]
    if f"ksoftirqd/{lowest}" not in names_found:
        pytest.skip("kernel threads are hidden here (a pid namespace)")
    assert f"migration/{lowest}" in names_found
