"""A KubeSchedulerConfiguration becomes profiles as kube-scheduler would make them, or all its faults are told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.cluster.embedded.scheduler_file import load_configuration, parse_configuration
from bayplan.scheduling.arguments import (
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from bayplan.scheduling.configuration import ConfigurationError, SchedulerConfiguration, read_configuration
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import KNOWN, default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.service.yaml_lines import FileError
from bayplan.testing import node, pod

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PAGE = Path(__file__).parent.parent.parent / "docs/scheduler-configuration.md"


def configured(text: str) -> SchedulerConfiguration:
    return parse_configuration("scheduler.yaml", yaml.safe_dump(HEADER) + text)


def profile(**written: Any) -> Profile:
    """The only profile of a file."""
    (found,) = read_configuration({**HEADER, "profiles": [written]}).profiles
    return found


def with_plugins(**sets: Any) -> Profile:
    """A profile with plugin sets: names, those that begin with '-' disabled, with `=weight` if they weigh."""
    return profile(plugins={point: plugin_set(names) for point, names in sets.items()})


def plugin_set(names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"enabled": [], "disabled": []}
    for name in names.split():
        if name.startswith("-"):
            found["disabled"].append({"name": name[1:]})
        else:
            plain, _, weight = name.partition("=")
            found["enabled"].append({"name": plain, **({"weight": int(weight)} if weight else {})})
    return found


def faults(document: Any) -> dict[str, str]:
    """What is wrong with a document, by path."""
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(document, "scheduler.yaml")
    return {fault.path: fault.message for fault in caught.value.faults}


def filters(found: Profile) -> list[str]:
    return [plugin.name for plugin in found.filters]


def scorers(found: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in found.scorers}


def described(found: Profile) -> Any:
    """All of a profile as something that can be compared; plugins are known by their type and arguments."""

    def one(plugin: Any) -> Any:
        return type(plugin), getattr(plugin, "args", None)

    return (
        found.scheduler_name,
        [one(plugin) for plugin in found.gates],
        [one(plugin) for plugin in found.filters],
        [(one(plugin), weight) for plugin, weight in found.scorers],
        found.preemption,
        found.claims,
        found.percentage_of_nodes_to_score,
    )


DEFAULT = default_profile()


# --- what files say -------------------------------------------------------------------------------------------------


def test_a_file_that_says_nothing_is_the_default_scheduler() -> None:
    found = read_configuration(HEADER)

    assert [described(each) for each in found.profiles] == [described(DEFAULT)]
    assert (found.parallelism, found.percentage_of_nodes_to_score) == (16, 0)
    assert (found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds) == (1, 10)


_NOTHING: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "profiles": st.sampled_from([None, [], [{}], [{"plugins": None, "pluginConfig": []}]]),
        "percentageOfNodesToScore": st.sampled_from([None, 0]),
        "extenders": st.sampled_from([None, []]),
        "leaderElection": st.sampled_from([None, {}, {"leaderElect": False, "leaseDuration": "15s"}]),
        "clientConnection": st.sampled_from([None, {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 50.5}]),
        "enableProfiling": st.booleans(),
        "delayCacheUntilActive": st.booleans(),
        "podMaxBackoffSeconds": st.integers(1, 600),
    },
)


@given(_NOTHING)
def test_what_says_nothing_about_placing_changes_nothing(document: dict[str, Any]) -> None:
    found = read_configuration({**HEADER, **document})
    assert [described(each) for each in found.profiles] == [described(DEFAULT)]


def test_bin_packing_by_a_shape() -> None:
    found = configured("""
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: NodeResourcesFitArgs
          scoringStrategy:
            resources:
              - name: intel.com/foo
                weight: 3
              - name: intel.com/bar
                weight: 0
            requestedToCapacityRatio:
              shape:
                - utilization: 0
                - utilization: 100
                  score: 10
            type: RequestedToCapacityRatio
""")
    strategy = ScoringStrategy(
        "RequestedToCapacityRatio",
        (ResourceSpec("intel.com/foo", 3), ResourceSpec("intel.com/bar", 1)),
        RequestedToCapacityRatioParam((ShapePoint(0, 0), ShapePoint(100, 10))),
    )
    expected = default_profile(arguments={"NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=strategy)})
    assert described(found.profiles[0]) == described(expected)


def test_most_allocated_packs() -> None:
    (packing,) = configured("""
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: []}}
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit}]
""").profiles
    state = ClusterState(
        each.view()
        for each in (node("empty").offers(cpu=4), node("used").offers(cpu=4), pod("a").requests(cpu=2).on("used"))
    )

    assert decide(state, packing, PodInfo(pod("b").requests(cpu=1).view())).node == "used"
    assert decide(state, DEFAULT, PodInfo(pod("b").requests(cpu=1).view())).node == "empty"


def test_a_second_profile_that_does_not_score() -> None:
    found = configured("""
percentageOfNodesToScore: 40
profiles:
  - schedulerName: default-scheduler
  - schedulerName: no-scoring-scheduler
    percentageOfNodesToScore: 0
    plugins:
      preScore:
        disabled:
        - name: '*'
      score:
        disabled:
        - name: '*'
""").by_name()

    assert list(found) == ["default-scheduler", "no-scoring-scheduler"]
    assert described(found["default-scheduler"]) == described(default_profile(percentage_of_nodes_to_score=40))
    assert found["no-scoring-scheduler"].scorers == ()
    assert found["no-scoring-scheduler"].percentage_of_nodes_to_score == 0
    assert filters(found["no-scoring-scheduler"]) == filters(DEFAULT)


def test_everything_off_but_two() -> None:
    found = with_plugins(multiPoint="-* PrioritySort DefaultBinder NodeResourcesFit=4 NodeName")

    assert filters(found) == ["NodeResourcesFit", "NodeName"]
    assert scorers(found) == {"NodeResourcesFit": 4}
    assert (found.gates, found.preemption, found.claims) == ((), None, False)


def test_a_plugin_is_the_same_wherever_it_takes_part() -> None:
    found = with_plugins(score="NodeAffinity=7")
    (filtering,) = (plugin for plugin in found.filters if plugin.name == "NodeAffinity")
    assert found.scorers[0] == (filtering, 7)


def test_preemption_is_told_how_many_nodes_to_try_and_others_their_arguments() -> None:
    found = profile(
        pluginConfig=[
            {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 0}},
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 0}},
            {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}},
            {"name": "DynamicResources", "args": {"filterTimeout": "0s", "bindingTimeout": "1s"}},
            {"name": "NodeName"},
        ]
    )
    arguments = {"InterPodAffinity": InterPodAffinityArgs(0), "DefaultPreemption": DefaultPreemptionArgs(0, 100)}
    assert described(found) == described(default_profile(arguments=arguments))


# --- what is enabled, in which order --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        pytest.param(
            {"score": "ImageLocality"}, {"ImageLocality": 1, "TaintToleration": 3}, id="an override comes first"
        ),
        pytest.param({"score": "TaintToleration"}, {"TaintToleration": 1}, id="a weight left out at score is 1"),
        pytest.param({"multiPoint": "NodeAffinity"}, {"TaintToleration": 3, "NodeAffinity": 1}, id="and at multiPoint"),
        pytest.param(
            {"multiPoint": "NodeAffinity=9"}, {"TaintToleration": 3, "NodeAffinity": 9}, id="multiPoint keeps the place"
        ),
        pytest.param(
            {"multiPoint": "NodeAffinity=9", "score": "NodeAffinity=5"}, {"NodeAffinity": 5}, id="score weighs more"
        ),
        pytest.param(
            {"multiPoint": "NodeAffinity=9", "score": "-NodeAffinity"},
            {"TaintToleration": 3, "NodeResourcesFit": 1},
            id="a point can disable what multiPoint enables",
        ),
        pytest.param(
            {"score": "TaintToleration=3 NodeAffinity=-1"},
            {"TaintToleration": 3, "NodeAffinity": -1},
            id="upstream takes negative weights that others outweigh",
        ),
        pytest.param({"score": "NodeAffinity=0"}, {"NodeAffinity": 1}, id="0 is 1"),
    ],
)
def test_scorers_begin_with(sets: dict[str, str], expected: dict[str, int]) -> None:
    assert list(scorers(with_plugins(**sets)).items())[: len(expected)] == list(expected.items())


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        pytest.param({"score": "-ImageLocality ImageLocality=2"}, {"ImageLocality": 2}, id="at its point"),
        pytest.param({"multiPoint": "-ImageLocality ImageLocality=2"}, {"ImageLocality": 2}, id="at multiPoint"),
        pytest.param(
            {"multiPoint": "-TaintToleration", "score": "TaintToleration=2", "preScore": "TaintToleration"},
            {"TaintToleration": 2},
            id="what only a point enables",
        ),
    ],
)
def test_scorers_end_with_what_was_disabled_and_enabled_again(sets: dict[str, str], expected: dict[str, int]) -> None:
    assert list(scorers(with_plugins(**sets)).items())[-1:] == list(expected.items())


@pytest.mark.parametrize(
    ("point", "names", "gone"),
    [
        pytest.param("preEnqueue", "-SchedulingGates", "gates", id="pods are not held back by gates"),
        pytest.param("postFilter", "-DefaultPreemption", "preemption", id="nobody is evicted"),
        pytest.param("postFilter", "-DynamicResources", "claims", id="claims have no word in failures"),
        pytest.param("filter", "-EBSLimits -GangScheduling", "", id="what is not there any more, or not yet: nothing"),
        pytest.param("score", "-NodeName", "", id="what has no such point: nothing"),
    ],
)
def test_disabling_at_one_point_leaves_the_others(point: str, names: str, gone: str) -> None:
    found = with_plugins(**{point: names})

    assert filters(found) == filters(DEFAULT)
    assert scorers(found) == scorers(DEFAULT)
    assert (found.gates == () or [plugin.name for plugin in found.gates] == ["DynamicResources"]) == (gone == "gates")
    assert (found.preemption is None) == (gone == "preemption")
    assert found.claims == (gone != "claims")


@given(st.sets(st.sampled_from([known.name for known in KNOWN if known.name not in ("PrioritySort", "DefaultBinder")])))
def test_disabling_plugins_everywhere_leaves_the_others_in_order(disabled: set[str]) -> None:
    found = with_plugins(multiPoint=" ".join(f"-{name}" for name in sorted(disabled)))

    assert filters(found) == [name for name in filters(DEFAULT) if name not in disabled]
    assert list(scorers(found).items()) == [each for each in scorers(DEFAULT).items() if each[0] not in disabled]
    assert (found.preemption is None) == ("DefaultPreemption" in disabled)


def test_what_is_prepared_and_does_not_filter_can_still_name_nodes() -> None:
    wish = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}
    picky = (
        pod("p")
        .pod_having("affinity.nodeAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": wish})
        .selecting(gpu="none")
    )
    state = ClusterState(each.view() for each in (node("a"), node("b"), node("c")))

    assert decide(state, DEFAULT, PodInfo(picky.view())).node == ""
    assert decide(state, with_plugins(filter="-NodeAffinity"), PodInfo(picky.view())).node == "b"


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (tmp_path / "scheduler.yaml").write_text(example)

    found = load_configuration(tmp_path / "scheduler.yaml").by_name()["bin-packing"]

    assert next(iter(scorers(found).items())) == ("NodeResourcesFit", 5)
    assert scorers(found).keys() == scorers(DEFAULT).keys() - {"ImageLocality", "NodeResourcesBalancedAllocation"}
    assert (found.preemption, found.percentage_of_nodes_to_score) == (None, 100)


def test_what_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(FileError, match=r"^scheduler\.yaml:\d+: not YAML"):
        configured("profiles: [")


def test_a_file_with_many_mistakes_is_told_all_of_them(snapshot: SnapshotAssertion) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration("scheduler.yaml", MANY_MISTAKES)
    assert str(caught.value) == snapshot


MANY_MISTAKES = """\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
paralelism: 4
podInitialBackoffSeconds: 60
percentageOfNodesToScore: half
leaderElection:
  leaderElect: true
extenders:
  - urlPrefix: http://127.0.0.1:8888/
profiles:
  - schedulerName: packing
    percentageOfNodesToScore: 120
    plugins:
      score:
        enabled:
          - name: NodeResourcesFit
            weight: many
          - name: NodeName
          - name: FitNodeResources
        disabled:
          - name: ImageLocalty
      preFilter:
        disabled:
          - name: NodePorts
      bind:
        disabled:
          - name: "*"
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources:
              - name: cpu
                weight: 500
              - weight: 1
            requestedToCapacityRatio:
              shape:
                - {utilization: 50, score: 0}
                - {utilization: 20, score: 20}
      - name: PodTopologySpread
        args:
          defaultConstraints:
            - maxSkew: 0
              topologyKey: topology.kubernetes.io/zone
              whenUnsatisfiable: Perhaps
  - schedulerName: packing
    plugin:
      filter: {}
    pluginConfig: none
"""
