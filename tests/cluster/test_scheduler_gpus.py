"""The embedded scheduler with GPU policies: shares go to devices, and the pod says to which."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.scheduler_file import parse_configuration
from bayplan.cluster.kinds import POD
from bayplan.scheduling.gpus.asking import DEVICES, SHARE
from tests.cluster.scheduler_bench import Bench

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      filter: {enabled: [{name: GpuShare}]}
      preFilter: {enabled: [{name: GpuShare}]}
      score: {disabled: [{name: "*"}], enabled: [{name: FGD, weight: 100}]}
    pluginConfig:
      - name: FGD
        args:
          typicalPods:
            - {cpuMilli: 1000, gpuMilli: 1000, gpus: 1, weight: 2}
            - {cpuMilli: 500, gpuMilli: 500, gpus: 1}
"""


def devices(bench: Bench) -> dict[str, tuple[str, str]]:
    """For each pod its node and its devices."""
    found = bench.world.store.objects(POD)
    where = bench.where()
    return {item.name: (where[item.name], item.meta.annotations.get(DEVICES, "")) for item in found}


def test_shares_are_packed_and_whole_ones_kept_free() -> None:
    bench = Bench(parse_configuration("gpus.yaml", CONFIGURATION))
    bench.node("a")
    for name, share in (("s0", "500"), ("s1", "500"), ("s2", "700")):
        bench.pod(name, cpu="100m", annotations={SHARE: share})
        bench.to(1)
    bench.pod("whole", cpu="100m", gpus=1)
    bench.to(2)
    assert devices(bench) == {"s0": ("a", "0"), "s1": ("a", "0"), "s2": ("a", "1"), "whole": ("", "")}
    assert ("FailedScheduling", "0/1 nodes are available: 1 node(s) didn't have enough GPUs free.") in [
        (reason, message.partition(" no new claims")[0]) for reason, message in bench.events()
    ]


def test_a_place_that_is_given_back_is_taken_again() -> None:
    bench = Bench(parse_configuration("gpus.yaml", CONFIGURATION))
    bench.node("a")
    for name in ("w0", "w1", "w2"):
        bench.pod(name, cpu="100m", gpus=1)
    bench.to(1)
    assert devices(bench) == {"w0": ("a", "0"), "w1": ("a", "1"), "w2": ("", "")}
    bench.delete("w0")
    bench.run()
    bench.to(30)
    assert devices(bench)["w2"] == ("a", "0")


def test_a_refusal_of_a_large_share_says_nothing_of_a_smaller_one() -> None:
    bench = Bench(parse_configuration("gpus.yaml", CONFIGURATION))
    bench.node("a")
    for name, share in (("s0", "700"), ("s1", "700"), ("large", "500"), ("small", "300")):
        bench.pod(name, cpu="100m", annotations={SHARE: share})
    bench.to(1)
    assert {name: node for name, (node, _) in devices(bench).items()} == {
        "s0": "a", "s1": "a", "large": "", "small": "a",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "late"),
    [
        pytest.param({SHARE: "900"}, ("", ""), id="a share that grew leaves less room"),
        pytest.param({DEVICES: "1"}, ("a", "1"), id="a share that moved is packed with where it is now"),
    ],
)
def test_what_a_placed_pod_says_later_counts(said: dict[str, str], late: tuple[str, str]) -> None:
    bench = Bench(parse_configuration("gpus.yaml", CONFIGURATION))
    bench.node("a")
    for name in ("s0", "s1") if SHARE in said else ("s0",):
        bench.pod(name, cpu="100m", annotations={SHARE: "600"})
        bench.to(1)
    for item in [*bench.world.store.objects(POD)]:
        bench.world.server.merge(item, {"metadata": {"annotations": said}})
    bench.run()
    bench.to(5)
    bench.pod("late", cpu="100m", annotations={SHARE: "300"})
    bench.to(6)
    assert devices(bench)["late"] == late
