"""The numbers in the documents of the node room: each is computed again here, or stands beside its source."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bayplan.agent.observe import USUAL
from bayplan.agent.rules import prometheus_rules
from bayplan.cluster.kinds import POD
from bayplan.model.pods import Pod
from bayplan.model.qos import QosClass, compute_qos
from bayplan.model.quantity import parse
from bayplan.node.admission import NodeManagers
from bayplan.node.burst import koordinator, short
from bayplan.node.cgroup.conversions import milli_to_quota, milli_to_shares
from bayplan.node.cgroup.naming import Driver, GroupName, Qos, path_of
from bayplan.node.cpu import options as cpu_options
from bayplan.node.machines import named
from bayplan.node.needs import ContainerNeed, PodNeed, Role, needs_of
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import format_list, ids_of, parse_list
from bayplan.node.throttling import kernels
from bayplan.node.throttling.causes import Cause
from bayplan.node.tiers.manager import TIERS
from bayplan.node.topology.options import DEFAULT_MOST_NODES, MOST_NODES, PREFER_CLOSEST
from bayplan.testing import fake_cluster, pod

ROOT = Path(__file__).parent.parent
DOCS = {name: (ROOT / f"docs/{name}.md").read_text() for name in ("qos-classes", "throttling", "numa", "cpu-manager")}

EPYC, DGX = "epyc-7763-2s-nps4", "dgx-h100"
GPU = "nvidia.com/gpu"
PERIOD_MS = 100

Row = dict[str, str]


def table(page: str, *columns: str) -> list[Row]:
    """The rows of the table that has these columns first."""
    lines = page.splitlines()
    for number, line in enumerate(lines):
        names = _cells(line)
        if tuple(names[: len(columns)]) == columns:
            assert len(set(names)) == len(names), f"two columns of one name: {names}"
            body = lines[number + 2 :]
            end = next((index for index, each in enumerate(body) if not each.startswith("|")), len(body))
            return [dict(zip(names, _cells(each), strict=True)) for each in body[:end]]
    raise AssertionError(f"no table with the columns {columns}")


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def rows(page: str, *columns: str) -> list[Any]:
    """The table's rows as parameters, named after their first cell."""
    return [pytest.param(row, id=row[columns[0]]) for row in table(DOCS[page], *columns)]


# QoS classes


def _amounts(text: str) -> dict[str, str]:
    return {} if text == "none" else dict(part.split() for part in text.split(", "))


def _stored(row: Row) -> Pod:
    """The pod of a row, as the API server keeps it."""
    kinds, requests, limits = (row[name].split(" + ") for name in ("containers", "requests", "limits"))
    spec: dict[str, Any] = {"containers": [], "initContainers": []}
    for number, kind in enumerate(kinds):
        resources = {"requests": _amounts(requests[number]), "limits": _amounts(limits[number])}
        if kind == "pod":
            spec["resources"] = resources
            continue
        always = {"restartPolicy": "Always"} if kind == "sidecar" else {}
        where = spec["containers" if kind == "app" else "initContainers"]
        where.append({"name": f"c{number}", "image": "example.org/app", "resources": resources, **always})
    cluster = fake_cluster()
    document = {**pod("pod").document(), "spec": spec}
    return cluster.world.server.create(POD, "default", document).object.view(Pod)


@pytest.mark.parametrize("row", rows("qos-classes", "pod", "containers"))
def test_a_pod_has_the_class_and_the_cpus_that_the_table_says(row: Row) -> None:
    stored = _stored(row)
    need = needs_of(stored)

    assert compute_qos(stored.spec) == row["class"]
    assert stored.status.qos_class == row["class"]
    given = [0 if need.pod_level else each.cpus for each in need.containers]
    assert " + ".join(map(str, given)) == row["own CPUs"]


@pytest.mark.parametrize(
    ("name", "held"),
    [
        pytest.param("an init container that needs more", 4, id="the app takes over what the init container had"),
        pytest.param("a sidecar", 3, id="a sidecar stays"),
    ],
)
def test_how_many_cpus_a_pod_holds_in_all(name: str, held: int) -> None:
    row = next(each for each in table(DOCS["qos-classes"], "pod", "containers") if each["pod"] == name)
    need = needs_of(_stored(row))
    managers = NodeManagers(named(EPYC), NodePolicies(cpu="static", reserved=2))
    assert managers.admit(need).admitted
    assert managers.cpu.exclusive.bit_count() == held


def test_what_a_class_means_on_the_node() -> None:
    said = {row[""]: row for row in table(DOCS["qos-classes"], "", "Guaranteed")}
    for qos in Qos:
        assert said["cgroup (driver cgroupfs)"][qos] == path_of(GroupName(qos, "UID"), Driver.CGROUPFS)
    shares = said["share of a busy node, per CPU requested"]
    assert shares[QosClass.BURSTABLE] == shares[QosClass.GUARANTEED] == f"{milli_to_shares(1000)} shares"
    assert shares[QosClass.BEST_EFFORT] == f"{milli_to_shares(0)} shares in all"


# Throttling


@pytest.mark.parametrize("row", rows("throttling", "limit", "quota a period"))
def test_a_limit_becomes_the_quota_that_the_table_says(row: Row) -> None:
    quota = milli_to_quota(parse(row["limit"]).milli())
    assert quota is not None
    assert f"{quota // 1000} ms" == row["quota a period"]


def done_after(work: Fraction, cpus: int, quota: Fraction, burst: Fraction) -> Fraction:
    """Milliseconds until work is done that begins with a period, by the rule of the bucket."""
    now, tokens = Fraction(0), quota + burst
    while work > (spent := min(tokens, Fraction(cpus * PERIOD_MS))):
        work -= spent
        tokens = min(tokens - spent + quota, quota + burst)
        now += PERIOD_MS
    return now + work / cpus


@pytest.mark.parametrize("row", rows("throttling", "limit", "CPUs at once"))
def test_work_takes_as_long_as_the_table_says(row: Row) -> None:
    cpus, work = int(row["CPUs at once"]), Fraction(row["work"].removesuffix(" ms"))
    quota = Fraction(parse(row["limit"]).milli() * PERIOD_MS, 1000)

    assert _ms(row["no limit"]) == work / cpus
    assert _ms(row["with the limit"]) == done_after(work, cpus, quota, Fraction(0))
    assert _ms(row["with a burst"]) == done_after(work, cpus, quota, quota)


def _ms(text: str) -> Fraction:
    return Fraction(text.removesuffix(" ms"))


def test_the_words_about_the_paradox_are_those_of_the_model() -> None:
    text = " ".join(DOCS["throttling"].split())
    quota, threads = Fraction(50), 4
    assert f"after {float(quota / threads)} ms, and wait {float(PERIOD_MS - quota / threads)} ms" in text
    assert "40 ms run, 60 ms wait, 20 ms run" in text
    assert done_after(Fraction(60), 1, Fraction(40), Fraction(0)) == 40 + 60 + 20
    assert f"They use {2 * 55 / 500 / 0.7:.0%} of the limit" in text  # 2 x 55 ms every 500 ms, of 0.7 CPUs
    assert f"{12 / 36:.0%} of their periods" in text


def test_every_cause_is_told() -> None:
    said = {row["cause"] for row in table(DOCS["throttling"], "cause", "in a sentence")}
    assert said == {*Cause} - {Cause.NONE, Cause.NO_LIMIT}
    assert {row["cause"] for row in table(DOCS["throttling"], "load", "cause")} == said - {Cause.KERNEL_DEFECT}


def test_the_kernels_with_the_defect_are_those_of_the_code() -> None:
    text = " ".join(DOCS["throttling"].split())
    stable = [f"{major}.{minor}.{patch}" for (major, minor), patch in kernels.BACKPORTS.items()]
    first = f"{kernels.FIXED[0]}.{kernels.FIXED[1]}"
    assert f"in {first}, and in the stable releases {', '.join(stable[:-1])} and {stable[-1]}" in text
    assert f"slices of {kernels.SLICE_US // 1000} ms" in text
    assert f"Linux {kernels.BURST_SINCE[0]}.{kernels.BURST_SINCE[1]}" in text


def test_the_queries_are_those_of_the_rules() -> None:
    records = prometheus_rules(USUAL)["groups"][0]["rules"]
    for record in records[:2]:
        assert record["expr"] in DOCS["throttling"]
    text = " ".join(DOCS["throttling"].split())
    assert f"more than {USUAL.throttled:.0%} of a minute's periods" in text
    assert f"stay so for {USUAL.hold_us // 1_000_000} s" in text


def test_the_numbers_of_bursts_are_the_defaults() -> None:
    text = " ".join(DOCS["throttling"].split())
    adaptive, rule = koordinator.BurstConfig(), short.ShortBurst()
    for said in (
        f"`cpuBurstPercent` ({adaptive.cpu_burst_percent})",
        f"`cfsQuotaBurstPercent` ({adaptive.cfs_quota_burst_percent})",
        f"`sharePoolThresholdPercent` ({adaptive.share_pool_threshold_percent})",
        f"`cfsQuotaBurstPeriodSeconds` is set ({adaptive.cfs_quota_burst_period_seconds}: never)",
        f"more than {rule.threshold:.0%} of its periods throttled within a second",
        f"{rule.least:g} to {rule.most:g} times its quota",
        f"for {rule.lasts // 1000} ms ({short.SHORTEST // 1000} to {short.LONGEST // 1000} may be set)",
        f"by default {rule.cooldown // 1000} ms",
        f"remembered for {rule.memory // 1_000_000} s, looked at every {rule.close_look // 1000} ms",
        f"gets three times its quota as soon as it has spent {'a quarter' * (rule.early == 0.25)} of it",
    ):
        assert said in text
    assert (koordinator.UP, koordinator.DOWN, koordinator.COOLING_SHARE) == (1.2, 0.8, 0.9)


def test_the_tiers_are_those_of_the_code() -> None:
    said = [[*row.values()] for row in table(DOCS["throttling"], "tier", "weight")]
    assert said == [
        [
            str(tier.number),
            "its own" if tier.share == 1 else f"{tier.share:g} of its own",
            "its own" if tier.quota_cpus is None else f"{tier.quota_cpus:g} CPUs",
            f"{tier.burst:g}" if tier.burst else "none",
        ]
        for tier in TIERS
    ]


def test_measured_throttling_is_that_of_the_design() -> None:
    design = {row[""]: row for row in table((ROOT / "designs/0011-cgroups-and-burst.md").read_text(), "", "none")}
    page = {row[""]: row for row in table(DOCS["throttling"], "", "none")}
    for shape in ("spike", "surge"):
        told, kept = page[f"{shape}: periods throttled"], design[f"{shape}: throttled periods"]
        assert [*told.values()][1:] == [*kept.values()][1:]


def test_the_measured_shares_of_tiers_are_those_of_their_weights() -> None:
    measured = next(iter(table(DOCS["throttling"], "tier of the first", "0")))
    weights = {str(tier.number): tier.share / (tier.share + 2) for tier in TIERS}
    assert {tier: measured[tier] for tier in weights} == {tier: f"{share:.0%}" for tier, share in weights.items()}


# NUMA


@pytest.mark.parametrize("row", rows("numa", "machine", "NUMA nodes"))
def test_distances_are_those_of_the_machine(row: Row) -> None:
    machine = named(row["machine"])
    sockets = {cpu.node: cpu.socket for cpu in machine.topology.cpus}
    near, far = set[str](), set[str]()
    for node in machine.nodes:
        for other, distance in node.distances.items():
            if other != node.id:
                (near if sockets[other] == sockets[node.id] else far).add(str(distance))

    assert len(machine.nodes) == int(row["NUMA nodes"])
    assert near == {row["same socket"]} - {""}
    assert far == {row["other socket"]}


def test_how_much_slower_follows_from_the_cited_figures() -> None:
    cited = table(DOCS["numa"], "machine", "latency, own node")
    latency, bandwidth = (
        [_number(row[f"{what}, other socket"]) / _number(own) for row in cited if (own := row[f"{what}, own node"])]
        for what in ("latency", "bandwidth")
    )
    assert f"{min(latency):.1f} to {_up(max(latency)):.1f} times" in DOCS["numa"]
    assert f"{100 * min(bandwidth):.0f} to {100 * max(bandwidth):.0f}% of the bandwidth" in DOCS["numa"]


def _number(text: str) -> float:
    return float(text.split()[0])


def _up(value: float) -> float:
    return -(-value * 10 // 1) / 10


def test_every_figure_of_others_has_its_source() -> None:
    sources = re.findall(r"^(\d)\. \S", DOCS["numa"], re.M)
    assert sources == [str(number) for number in range(1, len(sources) + 1)]
    assert set(re.findall(r"\[(\d)\]", DOCS["numa"])) == set(sources)


def managers_of(
    machine: str, policy: str, *, reserved: int = 2, options: Mapping[str, str] | None = None, **more: Any
) -> NodeManagers:
    topology = TopologyPolicies(policy, options=dict(options or {}))
    return NodeManagers(named(machine), NodePolicies(cpu="static", reserved=reserved, topology=topology, **more))


def asking(uid: str, cpus: int, **devices: int) -> PodNeed:
    return PodNeed(uid, (ContainerNeed("app", Role.APP, cpus, devices={GPU: devices["gpus"]} if devices else {}),))


def placed(managers: NodeManagers, need: PodNeed) -> tuple[str, str]:
    """The pod's CPUs and their NUMA nodes; or the reason of its refusal, and it is removed."""
    admission = managers.admit(need)
    if admission.refusal is not None:
        managers.remove(need.uid)
        return admission.refusal.reason, ""
    held = managers.holdings(need.uid)["app"]
    return format_list(held.cpus), format_list(managers.machine.topology.nodes_of(held.cpus))


@pytest.mark.parametrize("row", rows("numa", "policy", "24 CPUs"))
def test_two_pods_lie_where_the_table_says(row: Row) -> None:
    managers = managers_of(EPYC, row["policy"])
    assert format_list(managers.cpu.reserved) == "0,128"
    assert [*placed(managers, asking("a", 24)), *placed(managers, asking("b", 40))] == [*row.values()][1:]


NINTH = table(DOCS["numa"], "policy", "pods on one node of the first nine")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["policy"]) for row in NINTH])
def test_the_ninth_pod_lies_where_the_table_says(row: Row) -> None:
    managers = managers_of(EPYC, row["policy"])
    found = [placed(managers, asking(f"pod-{number}", 20)) for number in range(9)]

    single = [nodes for _, nodes in found if nodes.isdigit()]
    cpus, nodes = found[-1]
    assert str(len(single)) == row["pods on one node of the first nine"]
    told = cpus if not nodes else f"on node {nodes}" if nodes.isdigit() else f"on nodes {nodes}"
    assert told == row["the ninth"]


@pytest.mark.parametrize("row", rows("numa", "policy", "first pod's CPUs, its GPUs"))
def test_gpus_lie_where_the_table_says(row: Row) -> None:
    managers = managers_of(DGX, row["policy"])
    where = {device.id: device.nodes for device in managers.machine.devices}
    found = []
    for uid in ("a", "b"):
        _, nodes = placed(managers, asking(uid, 16, gpus=4))
        given = {node for each in managers.holdings(uid)["app"].devices[GPU] for node in ids_of(where[each])}
        found.append(f"node {nodes}, node {','.join(map(str, given))}")
    assert found == [*row.values()][1:]


@pytest.mark.parametrize("row", rows("numa", PREFER_CLOSEST, "nodes"))
def test_the_closest_nodes_are_those_of_the_table(row: Row) -> None:
    managers = managers_of(EPYC, "best-effort", options={PREFER_CLOSEST: row[PREFER_CLOSEST]})
    taken = [placed(managers, asking(f"pod-{number}", 32))[1] for number in range(3)]
    assert taken == ["1", "2", "3"]
    _, nodes = placed(managers, asking("large", 60))
    one, other = ids_of(parse_list(nodes))
    assert [nodes, str(managers.machine.nodes[one].distances[other])] == [*row.values()][1:]


# The managers


def test_the_example_of_the_managers_prints_what_it_says() -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```", DOCS["cpu-manager"], re.M | re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {"__name__": "snippet"})
    assert printed.getvalue().splitlines()[0] == "True 1-12,129-140"


def test_the_options_are_those_of_the_code() -> None:
    said = {row["option"]: set(re.findall(r"[a-z-]{12,}", row["not with"])) for row in options_table()}
    pairs = cpu_options._NOT_TOGETHER
    known = {name: {a if b == name else b for a, b in pairs if name in (a, b)} for name in cpu_options._FIELDS}
    known[cpu_options.BY_SOCKET] = {"single-numa-node"}
    assert said == known


def options_table() -> list[Row]:
    return table(DOCS["cpu-manager"], "option", "what it changes")


def test_the_topology_options_are_told() -> None:
    text = DOCS["cpu-manager"]
    assert f"`{PREFER_CLOSEST}`" in text
    assert re.search(rf"`{MOST_NODES}` \|.*refused; {DEFAULT_MOST_NODES}, and not less", text)


@pytest.mark.parametrize("place", re.findall(r"`(tests/\S+::\w+)`", DOCS["cpu-manager"]))
def test_every_defect_is_shown_by_a_test_that_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.M)


def test_every_defect_names_its_test() -> None:
    defects = table(DOCS["cpu-manager"], "what kubelet 1.36 does", "what bayplan does")
    assert all("::" in row["shown by"] and row["kept"] in ("yes", "no", "") for row in defects)
