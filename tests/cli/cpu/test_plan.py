"""`bayplan cpu plan`: the map, the table, the pools, what is assumed, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.cpu.drawing import plain
from bayplan.cli.cpu.explain import page
from bayplan.cli.cpu.plan_document import plan_document
from bayplan.cli.cpu.plan_input import Planned
from bayplan.cli.cpu.plan_page import Shown, plan_lines
from bayplan.cli.main import main
from bayplan.node.checkpoint.errors import CorruptCheckpointError
from bayplan.node.checkpoint.kubelet_cpu import read_cpu_state
from bayplan.node.configuration import read_configuration
from bayplan.node.machine import Machine
from bayplan.node.plan import make_plan
from bayplan.node.reservations import ReservationError
from bayplan.node.whatif import situation, suggestions
from tests.node.planned_pods import guaranteed
from tests.node.random_machines import machines

PODS = str(Path(__file__).parents[3] / "examples" / "08_cpu_plan.yaml")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
  - name: app
    resources: {limits: {cpu: "CPUS", memory: 1Gi}}
"""


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def pods(tmp_path: Path, **cpus: object) -> str:
    """A file with a pod for each name."""
    path = tmp_path / "pods.yaml"
    path.write_text("---".join(POD.replace("NAME", name).replace("CPUS", str(count)) for name, count in cpus.items()))
    return str(path)


def state_file(tmp_path: Path, **content: Any) -> str:
    """A kubelet's file, with the checksum that belongs to it."""
    path = tmp_path / "cpu_manager_state"
    try:
        read_cpu_state(json.dumps({**content, "checksum": 1}).encode())
    except CorruptCheckpointError as wrong:
        path.write_text(json.dumps({**content, "checksum": wrong.found}))
    return str(path)


@pytest.mark.parametrize(
    ("columns", "arguments"),
    [
        pytest.param(
            "120",
            ["--machine=dgx-a100", "--topology-manager-policy=best-effort", "--reserved-cpus=0,128"],
            id="256 CPUs at 120 columns",
        ),
        pytest.param(
            "80",
            ["--machine=dgx-a100", "--topology-manager-policy=restricted", "--memory-manager-policy=Static"],
            id="256 CPUs at 80 columns, with refusals",
        ),
        pytest.param(
            "200",
            ["--machine=hgx-h100-epyc", "--topology-manager-policy=single-numa-node", "-o", "wide"],
            id="wide, on a wide terminal",
        ),
    ],
)
def test_a_plan_as_people_read_it(
    columns: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["cpu", "plan", "-f", PODS, *arguments]) == 0
    assert capsys.readouterr().out == snapshot


def test_a_plan_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    file = pods(tmp_path, a=2, part="1500m", huge=8)
    assert main(["cpu", "plan", "-f", file, "--machine=vm-8", "-o", "json"]) == 0
    text = capsys.readouterr().out
    assert text == snapshot
    assert [each["admitted"] for each in json.loads(text)["pods"]] == [True, True, False]
    assert main(["cpu", "plan", "-f", file, "--machine=vm-8", "-o", "yaml"]) == 0
    assert "\npools:\n- numaNode: 0\n" in capsys.readouterr().out


def test_a_plan_starts_from_a_kubelets_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = {"7f1c": {"db": "1-3"}}
    state = state_file(tmp_path, policyName="static", defaultCpuSet="0,4-7", entries=entries)
    file = pods(tmp_path, a=2, b=3)
    assert main(["cpu", "plan", "-f", file, "--machine=vm-8", "--reserved-cpus=0", "--state", state]) == 0
    out = capsys.readouterr().out
    assert "pod 7f1c" in out
    assert "held before" in out
    assert "2 pods: 1 admitted, 1 refused" in out


def test_pods_of_all_kinds_come_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    template = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}
    job = {"parallelism": 3, "completions": 2, "template": template}
    objects = [
        ("apps/v1", "StatefulSet", {"replicas": 2, "ordinals": {"start": 5}, "template": template}),
        ("apps/v1", "ReplicaSet", {"template": template}),
        ("apps/v1", "Deployment", {"replicas": 0, "template": template}),
        ("apps/v1", "DaemonSet", {"template": template}),
        ("batch/v1", "Job", job),
        ("batch/v1", "CronJob", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}),
        ("v1", "ReplicationController", {"template": template}),
        ("v1", "Service", {}),
        ("v1", "Pod", template["spec"]),
    ]
    items = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}
        for api, kind, spec in objects
    ]
    ended = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ended"}, "status": {"phase": "Failed"}}
    whole = {"apiVersion": "v1", "kind": "List", "items": [*items, ended]}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(whole).encode())))
    assert main(["cpu", "plan", "-f", "-", "--machine=graviton3", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["pods"]] == [
        *("statefulset-5", "statefulset-6", "replicaset-0", "daemonset", "job-0", "job-1"),
        *("cronjob-0", "replicationcontroller-0", "pod"),
    ]
    assert found["notes"] == ["passed over, no pods of theirs: Service/service, Pod/ended (Failed)"]


@pytest.mark.parametrize(
    ("arguments", "assumed"),
    [
        pytest.param([], ["--cpu-manager-policy=static", "--system-reserved=cpu=1"], id="nothing is said"),
        pytest.param(["--reserved-system-cpus=0-1"], ["--cpu-manager-policy=static"], id="CPUs are reserved"),
        pytest.param(["--cpu-manager-policy=none"], [], id="the policy none"),
        pytest.param(
            ["--memory-manager-policy=Static", "--kube-reserved=cpu=1,memory=1Gi"],
            ["--cpu-manager-policy=static", "--reserved-memory=0:memory=1124Mi"],
            id="memory is kept somewhere",
        ),
    ],
)
def test_what_is_assumed_is_said(
    arguments: list[str], assumed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cpu", "plan", "-f", pods(tmp_path, a=2), "--machine=vm-8", "-o", "json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["assumed"] == assumed


def test_a_kubelets_file_is_taken_at_its_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text("kind: KubeletConfiguration\n")
    assert main(["cpu", "plan", "-f", pods(tmp_path, a=2), "--machine=vm-8", "--kubelet-config", str(config)]) == 0
    out = capsys.readouterr().out
    assert "assumed" not in out
    assert "the CPU manager's policy is none, so nothing is exclusive" in out


def test_devices_that_the_machine_does_not_have_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    main(["cpu", "plan", "-f", PODS, "--machine=graviton4-2s"])
    assert "the machine has no nvidia.com/gpu: a scheduler would not send such pods there" in capsys.readouterr().out


def test_more_pods_than_letters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = pods(tmp_path, **{f"p{n}": 1 for n in range(70)})
    assert main(["cpu", "plan", "-f", file, "--machine=epyc-9654-2s-nps1"]) == 0
    assert "+ 9 other pods" in capsys.readouterr().out


FLAWED = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: statik
"""


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param([], 2, "expected -f FILE with pods", id="no file"),
        pytest.param(["-f", "none.yaml"], 1, "none.yaml: No such file or directory", id="a file that is not there"),
        pytest.param(["-f", "map.yaml"], 1, "no pods in map.yaml; passed over: ConfigMap/a", id="no pods"),
        pytest.param(["-f", "twice.yaml"], 1, "pod default/a stands in twice.yaml:1 already", id="one pod twice"),
        pytest.param(["-f", "many.yaml"], 1, "a has 5000 pods; a plan takes 4096", id="too many"),
        pytest.param(["-f", "word.yaml"], 1, "word.yaml:1: Pod in version", id="no quantity"),
        pytest.param(
            ["-f", "word.yaml"], 1, 'mend spec.containers[0].resources.limits.cpu "one"', id="which is no quantity"
        ),
        pytest.param(
            ["-f", "below.yaml"],
            1,
            'below.yaml:1: a: spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or',
            id="less than nothing",
        ),
        pytest.param(
            ["-f", "above.yaml"], 1, "must be less than or equal to cpu limit of 1", id="a request above its limit"
        ),
        pytest.param(
            ["-f", "pod.yaml", "--cpu-manager-policy-options=full=true"], 1, 'option: "full"', id="an unknown option"
        ),
        pytest.param(
            ["-f", "pod.yaml", "--reserved-cpus=0,9"], 1, "0,9 is not a subset of online-cpus: 0-7", id="CPUs not there"
        ),
        pytest.param(
            ["-f", "pod.yaml", "--system-reserved=cpu=9"],
            1,
            "reservation of 9 (system 9) but capacity of 8",
            id="9 of 8",
        ),
        pytest.param(
            ["-f", "pod.yaml", "--kubelet-config=flawed.yaml", "--topology-manager-scope=x"],
            1,
            'flawed.yaml:3: cpuManagerPolicy: unknown policy: "statik"',
            id="a kubelet's file with a slip",
        ),
        pytest.param(
            ["-f", "pod.yaml", "--state=corrupt"], 1, "corrupt: checkpoint is corrupted", id="a corrupt state"
        ),
        pytest.param(
            ["-f", "pod.yaml", "--state=other", "--reserved-cpus=0"],
            1,
            "other: current set of available",
            id="not ours",
        ),
        pytest.param(
            ["-f", "pod.yaml", "--state=overlap", "--reserved-cpus=0"],
            1,
            'overlap: pod: u, container: c cpuset: "3-4" overlaps with default cpuset "0-3,5-7"',
            id="overlapping sets",
        ),
        pytest.param(
            ["-f", "pod.yaml", "--state=overlap", "--cpu-manager-policy=none"],
            1,
            'overlap: configured policy "none" differs from state checkpoint policy "static"',
            id="a state of another policy",
        ),
        pytest.param(["-f", "pod.yaml", "--machine=nowhere.yaml"], 1, "layout", id="a machine without a layout"),
    ],
)
def test_what_cannot_be_planned(
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pod = POD.strip().replace("NAME", "a").replace("CPUS", "1")
    replicas = pod.replace("kind: Pod", "kind: Deployment").replace("v1", "apps/v1", 1)
    many = replicas[: replicas.index("spec:")] + "spec: {replicas: 5000, template: {spec: {containers: [{name: a}]}}}"
    texts = {
        "pod.yaml": pod,
        "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        "twice.yaml": f"{pod}\n---\n{pod}",
        "many.yaml": many,
        "word.yaml": pod.replace('"1"', "one"),
        "below.yaml": pod.replace('"1"', "-1"),
        "above.yaml": pod.replace("{limits:", "{requests: {cpu: 2}, limits:"),
        "flawed.yaml": FLAWED,
        "corrupt": json.dumps({"policyName": "static", "defaultCpuSet": "0-7", "checksum": 5}),
        "nowhere.yaml": "name: nowhere\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name, default, own in (("other", "0-3", "4-5"), ("overlap", "0-3,5-7", "3-4")):
        made = state_file(tmp_path, policyName="static", defaultCpuSet=default, entries={"u": {"c": own}})
        Path(made).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    machine = [] if any(each.startswith("--machine") for each in arguments) else ["--machine=vm-8"]
    assert main(["cpu", "plan", *machine, *arguments]) == code
    assert told in capsys.readouterr().err


@settings(max_examples=20, deadline=None)
@given(
    machine=machines(),
    asked=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([None, 1])), min_size=1, max_size=5),
    topology=st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    width=st.integers(60, 160),
)
def test_any_machine_is_planned_drawn_and_explained(
    machine: Machine, asked: list[tuple[int, int | None]], topology: str, width: int
) -> None:
    flags = ["--cpu-manager-policy=static", "--system-reserved=cpu=1", f"--topology-manager-policy={topology}"]
    wanted = [guaranteed(f"p{n}", cpus, "1Mi", gpu) for n, (cpus, gpu) in enumerate(asked)]
    try:
        found = Planned(make_plan(machine, read_configuration(arguments=flags), wanted))
    except ReservationError:
        assume(False)  # less memory than the kubelet keeps from pods
    text = plain(plan_lines(found, Shown(width)))
    assert f"{len(wanted)} pods" in text or len(wanted) == 1
    answers = [(group, suggestions(situation(found.plan, group[0]))) for group in found.plan.alike]
    assert "".join(page(found, answers)).count("is refused") == len(found.plan.alike)
    assert msgspec.json.encode(plan_document(found))


def test_in_a_pipe_sentences_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS")
    name = "a-name-that-takes-most-of-a-line-of-eighty-columns-for-itself"
    assert main(["cpu", "plan", "-f", pods(tmp_path, **{name: 2}), "--machine=vm-8"]) == 0
    assert any(name in line and "core 2 (sibling 3)" in line for line in capsys.readouterr().out.splitlines())


def test_a_machine_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = io.TextIOWrapper(io.BytesIO(b"layout: {coresPerSocket: 4, memoryPerNode: 8Gi}\n"))
    monkeypatch.setattr("sys.stdin", text)
    assert main(["cpu", "plan", "-f", pods(tmp_path, a=2), "--machine=-", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"] == "standard input"
    assert main(["cpu", "plan", "-f", "-", "--machine=-"]) == 2
    assert "standard input is one file" in capsys.readouterr().err


def test_a_file_that_is_no_yaml_speaks_of_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    assert main(["cpu", "plan", "-f", str(empty), "--machine=vm-8"]) == 1
    assert "-R" not in capsys.readouterr().err
    (tmp_path / "bad.yaml").write_text("a: [")
    assert main(["cpu", "plan", "-f", str(tmp_path / "bad.yaml"), "--machine=vm-8"]) == 1
    assert "sent" not in capsys.readouterr().err
