"""Finding the kubelet of a machine, and keeping off what is its own."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bayplan.agent.kubelet import KubeletFileError, OwnedByKubeletError, find_kubelet, may_write, owned_by_kubelet
from bayplan.model.errors import PermanentError
from bayplan.node.sets import parse_list

_CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
maxPods: 200
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
reservedSystemCPUs: 0-1,8
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
"""


_CPU_STATE = '{"policyName":"static","defaultCpuSet":"0-15","checksum":3394376107}'


class Host:
    """A machine's files: /proc with processes, and a root that a process sees."""

    def __init__(self, place: Path) -> None:
        self.proc, self.root = place / "proc", place / "root"
        self.proc.mkdir()
        (self.root / "var/lib/kubelet").mkdir(parents=True)
        self.process(1, "/sbin/init")
        (self.proc / "stat").write_text("cpu  1 2 3 4 5\n")

    def process(self, pid: int, *command: str) -> None:
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "cmdline").write_bytes("\0".join((*command, "")).encode())
        (self.proc / str(pid) / "root").symlink_to(self.root)

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_no_kubelet(host: Host) -> None:
    host.process(7, "/usr/bin/vim", "kubelet.go")
    assert find_kubelet(host.proc, host.root) is None


def test_a_kubelet_with_a_configuration_file(host: Host) -> None:
    host.file("etc/kubelet.yaml", _CONFIG)
    host.file("var/lib/kubelet/cpu_manager_state", _CPU_STATE)
    host.process(42, "/usr/bin/kubelet", "--config=/etc/kubelet.yaml", "--v=2")

    found = find_kubelet(host.proc, host.root)

    assert found is not None
    assert (found.process, found.config, found.configuration.cgroup_driver) == (42, "/etc/kubelet.yaml", "systemd")
    policies = found.policies
    assert (policies.cpu, policies.cpu_options) == ("static", {"full-pcpus-only": "true"})
    assert (policies.topology.policy, policies.topology.scope) == ("single-numa-node", "pod")
    assert (policies.memory, policies.reserved_cpus) == ("Static", parse_list("0-1,8"))
    assert (found.cpu_state, found.memory_state) == ("static", "")


def test_a_flag_beats_the_file_and_a_drop_in_does_too(host: Host) -> None:
    host.file("etc/kubelet.yaml", _CONFIG)
    host.file("etc/kubelet.d/10-more.conf", "topologyManagerScope: container\n")
    host.process(
        42,
        "hyperkube",
        "kubelet",
        "--config",
        "/etc/kubelet.yaml",
        "--config-dir=/etc/kubelet.d",
        "--topology-manager-policy",
        "restricted",
        "--topology-manager-policy-options=prefer-closest-numa-nodes=true",
    )

    found = find_kubelet(host.proc, host.root)

    assert found is not None
    assert found.policies.topology.policy == "restricted"
    assert found.policies.topology.scope == "container"
    assert found.policies.topology.options == {"prefer-closest-numa-nodes": "true"}


def test_a_kubelet_without_any_setting_has_the_defaults(host: Host) -> None:
    host.process(42, "/usr/bin/kubelet")
    found = find_kubelet(host.proc, host.root)
    assert found is not None
    assert (found.policies.cpu, found.policies.memory, found.policies.topology.policy) == ("none", "None", "none")


def test_a_kubelet_that_does_not_run_has_left_its_files(host: Host) -> None:
    host.file("var/lib/kubelet/config.yaml", _CONFIG)
    found = find_kubelet(host.proc, host.root)
    assert found is not None
    assert (found.process, found.policies.cpu) == (None, "static")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("etc/kubelet.yaml", "a: [", id="a configuration that is no YAML"),
        pytest.param("var/lib/kubelet/cpu_manager_state", "{", id="a state that was cut off"),
        pytest.param(
            "var/lib/kubelet/cpu_manager_state", _CPU_STATE.replace("0-15", "0-7"), id="a state that does not add up"
        ),
    ],
)
def test_a_broken_file_is_named(host: Host, file: str, text: str) -> None:
    host.file("etc/kubelet.yaml", _CONFIG)
    host.file(file, text)
    host.process(42, "/usr/bin/kubelet", "--config=/etc/kubelet.yaml")
    with pytest.raises(PermanentError, match=file.rpartition("/")[2]):
        find_kubelet(host.proc, host.root)


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        ("/kubepods", True),
        ("/kubepods/burstable/pod1/c", True),
        ("/kubepods.slice/kubepods-burstable.slice", True),
        ("/kubelet/kubepods/x", True),
        ("/system.slice/kubelet.service", False),
        ("/mykubepods", False),
        ("/", False),
    ],
)
def test_what_the_kubelet_owns(path: str, owned: bool) -> None:
    assert owned_by_kubelet(path) is owned
    may_write(path, beside_kubelet=True)
    if owned:
        with pytest.raises(OwnedByKubeletError):
            may_write(path, beside_kubelet=False)
    else:
        may_write(path, beside_kubelet=False)


@pytest.mark.parametrize(
    ("call", "host_has"),
    [
        pytest.param("read_bytes", "a process", id="the file of a kubelet that runs"),
        pytest.param("exists", "no process", id="the file of one that ran"),
    ],
)
def test_files_that_only_root_may_read_say_so(
    call: str, host_has: str, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.file("etc/kubelet.yaml", _CONFIG)
    if host_has == "a process":
        host.process(42, "/usr/bin/kubelet", "--config=/etc/kubelet.yaml")
    original = getattr(Path, call)

    def closed(path: Path) -> object:
        if path.name in ("kubelet.yaml", "config.yaml"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(Path, call, closed)
    with pytest.raises(KubeletFileError, match=r"\.yaml: Permission denied") as refused:
        find_kubelet(host.proc, host.root)
    assert refused.value.hint.startswith("run as root")
