"""The agent's eyes on a tree in memory: what it sees, forgets, leaves out and exports."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bayplan.agent.burst_metrics import BURST_METRICS
from bayplan.agent.metrics import LABELS, METRICS, ThrottlingCollector
from bayplan.agent.observe import THROTTLED, Observer, Thresholds
from bayplan.agent.procfs import Proc
from bayplan.agent.reading import printable
from bayplan.agent.rules import prometheus_rules
from bayplan.model.clock import SECOND, Instant, VirtualClock
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import Bandwidth, Counters, Pressure
from bayplan.node.throttling.alerts import State

_UID = "3f1c8a52-6f0e-4a8f-9a55-0c1d2e3f4a5b"
_ID = "ab" * 32
_POD = f"/kubepods/burstable/pod{_UID}"
_CONTAINER = f"{_POD}/{_ID}"


class Scene:
    """A tree, a /proc and a clock."""

    def __init__(
        self,
        place: Path,
        version: int = 2,
        *,
        hold_us: int = 60 * SECOND,
        most_groups: int = 1000,
        most_threads: int = 1000,
    ) -> None:
        self.tree, self.clock = FakeTree(version), VirtualClock()
        self.proc, self.logs = place / "proc", place / "logs"
        self.proc.mkdir()
        self.logs.mkdir()
        self.observer = Observer(
            self.tree,
            self.clock,
            proc=Proc(self.proc),
            logs=self.logs,
            thresholds=Thresholds(hold_us=hold_us),
            most_groups=most_groups,
            most_threads=most_threads,
        )

    def group(self, path: str, quota_us: int | None = 50_000) -> str:
        self.tree.create(path).set_bandwidth(Bandwidth(quota_us))
        return path

    def process(self, path: str, *waited: int) -> int:
        pid = self.tree.spawn(path)
        for number, each in enumerate(waited):
            self.waits(pid, pid + number * 100_000, each)
        return pid

    def waits(self, pid: int, thread: int, waited: int) -> None:
        task = self.proc / str(pid) / "task" / str(thread)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"1 {waited} 1\n")

    def later(self, seconds: float) -> None:
        self.clock.advance_to(Instant(self.clock.now() + round(seconds * SECOND)))

    def scrape(self) -> dict[str, float]:
        registry = CollectorRegistry()
        registry.register(ThrottlingCollector(self.observer))
        lines = generate_latest(registry).decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _series(found: dict[str, float], metric: str, /, **labels: str) -> list[float]:
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return [
        value for key, value in found.items() if key.startswith(f"{metric}{{") and all(each in key for each in wanted)
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_counters_are_exported_as_the_kernel_has_them(tmp_path: Path, version: int) -> None:
    scene = Scene(tmp_path, version)
    scene.group(_POD, 100_000)
    scene.group(_CONTAINER)
    scene.tree.set_counters(_CONTAINER, Counters(100, 7, 3_500_000_000, 2, 40_000_000, 9_000_000_000))
    scene.process(_CONTAINER, 1_000_000_000, 500_000_000)

    found = scene.scrape()

    expected = {
        "container_cpu_cfs_periods_total": 100.0,
        "container_cpu_cfs_throttled_periods_total": 7.0,
        "container_cpu_cfs_throttled_seconds_total": 3.5,
        "container_cpu_cfs_burst_periods_total": 2.0,
        "container_cpu_cfs_burst_seconds_total": 0.04,
        "container_cpu_usage_seconds_total": 9.0,
        "bayplan_container_run_queue_seconds_total": 1.5,
        "container_spec_cpu_quota": 50_000.0,
        "container_spec_cpu_period": 100_000.0,
        "container_processes": 1.0,
    }
    for name, value in expected.items():
        assert _series(found, name, id=_CONTAINER, pod_uid=_UID, name=_ID) == [value], name
    assert _series(found, "bayplan_container_run_queue_seconds_total", id=_POD, name="") == [1.5]
    assert _series(found, "container_processes", id=_POD, name="") == [1.0]


def test_pressure_is_exported_where_groups_have_it(scene: Scene) -> None:
    scene.group(_CONTAINER)
    scene.tree.set_pressure(_CONTAINER, Pressure(1.0, 2_500_000, 0.5, 1_000_000))
    found = scene.scrape()
    assert _series(found, "container_pressure_cpu_waiting_seconds_total", id=_CONTAINER) == [2.5]
    assert _series(found, "container_pressure_cpu_stalled_seconds_total", id=_CONTAINER) == [1.0]


def test_version_1_has_no_pressure_of_groups(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 1)
    scene.group(_CONTAINER)
    assert _series(scene.scrape(), "container_pressure_cpu_waiting_seconds_total") == []


def test_a_group_without_a_limit_has_no_periods_as_with_cadvisor(scene: Scene) -> None:
    scene.group("/free", None)
    found = scene.scrape()
    assert _series(found, "container_cpu_usage_seconds_total", id="/free") == [0.0]
    assert _series(found, "container_cpu_cfs_periods_total", id="/free") == []
    assert _series(found, "container_spec_cpu_quota", id="/free") == []


def test_names_come_from_the_kubelets_log_links(scene: Scene) -> None:
    scene.group(_CONTAINER)
    (scene.logs / f"web-1_shop_main-{_ID}.log").touch()
    found = scene.scrape()
    labels = {"pod": "web-1", "namespace": "shop", "container": "main"}
    assert _series(found, "container_cpu_cfs_periods_total", **labels) == [0.0]


def test_the_throttle_ratio_is_that_of_the_window(scene: Scene) -> None:
    scene.group("/a")
    scene.observer.look()
    scene.later(5)
    scene.tree.set_counters("/a", Counters(50, 10))
    found = scene.scrape()
    assert _series(found, "bayplan_container_throttle_ratio", id="/a", window="10s") == [0.2]


def test_a_group_that_is_gone_has_no_series(scene: Scene) -> None:
    scene.group("/a")
    scene.group("/b")
    assert _series(scene.scrape(), "container_cpu_usage_seconds_total", id="/a")
    scene.tree.vanish("/a")
    found = scene.scrape()
    assert not [key for key in found if 'id="/a"' in key]
    assert _series(found, "container_cpu_usage_seconds_total", id="/b")


def test_a_group_that_vanishes_while_it_is_read_is_left_out(scene: Scene) -> None:
    scene.group("/a")
    scene.group("/b")
    scene.tree.vanish("/a", after=4)
    assert [each.path for each in scene.observer.look()] == ["/b"]


def test_of_too_many_groups_those_without_a_limit_are_left_out(tmp_path: Path) -> None:
    scene = Scene(tmp_path, most_groups=2)
    scene.group("/a", None)
    scene.group("/b")
    scene.group("/c", None)
    scene.group("/d")
    assert [each.path for each in scene.observer.look()] == ["/b", "/d"]
    assert scene.observer.skipped_groups == 2


def test_too_many_threads_keep_the_last_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, most_threads=2)
    pid = scene.process(scene.group("/a"), 5, 6)
    assert scene.observer.look()[0].history.latest is not None
    scene.waits(pid, pid + 7, 100)
    scene.later(1)
    (watched,) = scene.observer.look()
    assert watched.reading is not None
    assert (watched.reading.run_queue_ns, scene.observer.unasked_groups) == (11, 1)


def test_threads_that_end_stay_in_the_sum_of_their_group_and_the_one_above(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 1)  # of version 2 only leaves have processes
    scene.group("/a", 100_000)
    scene.group("/a/b")
    pid = scene.process("/a/b", 50)
    scene.observer.look()
    scene.tree.exit(pid)
    scene.process("/a", 7)
    scene.later(1)
    found = {each.path: each.reading for each in scene.observer.look()}
    assert {path: reading.run_queue_ns for path, reading in found.items() if reading} == {"/a": 50, "/a/b": 50}


def test_an_old_thread_that_moves_in_is_no_waiting(scene: Scene) -> None:
    scene.group("/a")
    scene.process("/a", 0)
    scene.observer.look()
    old = scene.process("/a", 10**13)
    scene.later(1)
    scene.observer.look()
    scene.waits(old, old, 10**13 + 500_000_000)
    scene.later(1)
    (watched,) = scene.observer.look()
    assert watched.history.rates("10s").run_queue_seconds == pytest.approx(0.25)


def test_a_group_of_version_1_without_counters_is_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 1)
    scene.group("/whole")
    for path in ("/limited", "/free"):
        scene.group(path, 50_000 if path == "/limited" else None)
        scene.tree.kernel.remove(f"/cpuacct{path}")
    assert [each.path for each in scene.observer.look()] == ["/whole"]
    assert (scene.observer.unmeasured, scene.observer.unreadable_groups) == (["/limited"], 1)


def test_a_glance_reads_counters_and_finds_new_groups_in_time(scene: Scene) -> None:
    scene.group("/a")
    scene.observer.look()
    scene.group("/b")
    scene.tree.set_counters("/a", Counters(9))
    scene.later(5)
    (seen,) = scene.observer.look(thorough=False)
    assert seen.reading is not None
    assert seen.reading.counters.periods == 9
    scene.later(5)
    assert len(scene.observer.look(thorough=False)) == 2


def test_an_alert_fires_after_its_time_and_is_a_series(tmp_path: Path) -> None:
    scene = Scene(tmp_path, hold_us=10 * SECOND)
    scene.group("/a")
    states = []
    for second in range(0, 20, 5):
        scene.tree.set_counters("/a", Counters(10 * second, second))
        states.append(scene.observer.look()[0].active().get(THROTTLED))
        scene.later(5)
    assert states == [None, State.PENDING, State.PENDING, State.FIRING]
    assert _series(scene.scrape(), "bayplan_alert", id="/a", alert=THROTTLED, state="firing") == [1.0]


def test_every_metric_has_the_labels_of_cadvisor() -> None:
    assert LABELS[:6] == ("id", "name", "image", "pod", "namespace", "container")


def test_every_metric_is_documented_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
    rows = re.findall(r"^\| `((?:container|bayplan|node)_\w+)` \|", page, re.M)
    assert sorted(rows) == sorted((*METRICS, *BURST_METRICS))


def test_every_metric_in_the_rules_is_one_of_ours_or_recorded() -> None:
    rules = prometheus_rules(Thresholds())
    written = [rule for group in rules["groups"] for rule in group["rules"]]
    recorded = {rule["record"] for rule in written if "record" in rule}
    for rule in written:
        for name in re.findall(r"\b(?:id:)?(?:container|bayplan)_[\w:]+", rule["expr"]):
            assert name in recorded | set(METRICS), name


@pytest.mark.parametrize(
    ("file", "number"),
    [
        pytest.param("cpu.stat", errno.EACCES, id="a file that may not be read"),
        pytest.param("cpu.max", errno.EIO, id="a file that cannot be read"),
    ],
)
def test_a_group_that_cannot_be_read_is_counted_and_left_out(scene: Scene, file: str, number: int) -> None:
    scene.group("/good")
    scene.tree.fail(scene.group("/bad"), file, number, reading=True)
    assert [each.path for each in scene.observer.look()] == ["/good"]
    assert scene.scrape()["bayplan_unreadable_groups"] == 1


@pytest.mark.parametrize("text", ["nr_periods", "nr_periods many", "", "nr_periods 1 2\nx"])
def test_a_malformed_file_is_counted_and_left_out(scene: Scene, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.group("/good")
    scene.group("/bad")
    read = scene.tree.kernel.read
    monkeypatch.setattr(scene.tree.kernel, "read", lambda path: text if path.endswith("/bad/cpu.stat") else read(path))
    assert [each.path for each in scene.observer.look() if each.path == "/good"] == ["/good"]
    scene.scrape()


def test_a_threaded_group_has_no_processes_to_ask(scene: Scene) -> None:
    scene.tree.fail(scene.group("/threaded"), "cgroup.procs", errno.EOPNOTSUPP, reading=True)
    assert [each.path for each in scene.observer.look()] == ["/threaded"]


def test_a_name_that_is_no_text_is_counted_and_left_out(scene: Scene) -> None:
    scene.group("/good")
    scene.group("/bad\udcff/below")
    scraped = scene.scrape()
    assert scraped["bayplan_observed_groups"] == 1
    assert scraped["bayplan_unreadable_groups"] == 2


@given(st.text(st.characters(exclude_characters="/\n\0", exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_name_makes_a_label_that_can_be_read_back(name: str) -> None:
    tree = FakeTree()
    path = tree.create(f"/x{name}").path
    registry = CollectorRegistry()
    registry.register(ThrottlingCollector(Observer(tree, VirtualClock(), proc=Proc(Path("/nowhere")))))
    samples = [
        sample
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if sample.name == "container_processes"
    ]
    assert [sample.labels["id"] for sample in samples] == [path]
    assert printable(path).isprintable()


def test_processes_that_are_hidden_from_us_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("os.listdir", refuse)
    assert Proc(tmp_path).waited([1, 2], 10) == {}
