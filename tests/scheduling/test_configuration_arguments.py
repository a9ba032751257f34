"""Arguments of plugins that are wrong are refused, each fault with its path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduling.test_configuration import HEADER, faults


def _ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}}


def _spread(**constraint: Any) -> dict[str, Any]:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", **constraint}
    return {"defaultingType": "List", "defaultConstraints": [whole]}


def _affinity(**requirement: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"], **requirement}]}


_SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_STRATEGIES = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
_OPERATORS = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'


REFUSED_ARGUMENTS = [
    pytest.param(
        "NodeResourcesFit",
        {"kind": "NodeAffinityArgs"},
        "kind",
        'expected NodeResourcesFitArgs, not "NodeAffinityArgs"',
        id="arguments of another",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "Most"}},
        "scoringStrategy.type",
        f'Unsupported value: "Most": {_STRATEGIES}',
        id="no strategy",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": ""}},
        "scoringStrategy.type",
        "Required value: LeastAllocated, MostAllocated or RequestedToCapacityRatio",
        id="no type of strategy",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
        "scoringStrategy.resources[0].weight",
        "Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        id="a weight above 100",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": -1}]}},
        "scoringStrategy.resources[0].weight",
        "Invalid value: -1: resource weight of cpu not in valid range (0, 100]",
        id="a weight below 0",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {}}},
        "scoringStrategy.requestedToCapacityRatio",
        "Forbidden: must be nil when type is not RequestedToCapacityRatio",
        id="a shape for another strategy",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
        "scoringStrategy.requestedToCapacityRatio",
        "Required value: must be specified when type is RequestedToCapacityRatio",
        id="no shape at all",
    ),
    pytest.param(
        "NodeResourcesFit", _ratio(), _SHAPE, "Required value: at least one point must be specified", id="no points"
    ),
    pytest.param(
        "NodeResourcesFit",
        _ratio((0, 0), (50, 5), (50, 6)),
        f"{_SHAPE}[2].utilization",
        "Invalid value: 50: values must be sorted in increasing order",
        id="points out of order",
    ),
    pytest.param(
        "NodeResourcesFit",
        _ratio((0, 0), (101, 5)),
        f"{_SHAPE}[1].utilization",
        "Invalid value: 101: not in valid range [0, 100]",
        id="more than used up",
    ),
    pytest.param(
        "NodeResourcesFit",
        _ratio((0, 0), (100, 11)),
        f"{_SHAPE}[1].score",
        "Invalid value: 11: not in valid range [0, 10]",
        id="a score above 10",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"ignoredResourceGroups": ["a.b/c"]},
        "ignoredResourceGroups[0]",
        "Invalid value: \"a.b/c\": resource group name can't contain '/'",
        id="a group with a slash",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"ignoredResources": ["a.b/"]},
        "ignoredResources[0]",
        'Invalid value: "a.b/": name part must be non-empty',
        id="no name of a resource",
    ),
    pytest.param(
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
        "resources[1].name",
        'Duplicate value: "cpu"',
        id="a resource twice",
    ),
    pytest.param(
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu", "weight": 2}]},
        "resources[0].weight",
        "Invalid value: 2: must be 1",
        id="balance is not weighed",
    ),
    pytest.param(
        "InterPodAffinity",
        {"hardPodAffinityWeight": 101},
        "hardPodAffinityWeight",
        "Invalid value: 101: not in valid range [0, 100]",
        id="a hard weight above 100",
    ),
    pytest.param(
        "InterPodAffinity",
        {"ignorePreferredTerms": True},
        "ignorePreferredTerms",
        "unknown field; did you mean ignorePreferredTermsOfExistingPods?",
        id="an unknown argument",
    ),
    pytest.param(
        "PodTopologySpread",
        {**_spread(), "defaultingType": ""},
        "defaultingType",
        'Invalid value: "System": when .defaultConstraints are not empty',
        id="a list for the system's own constraints",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "Lists"},
        "defaultingType",
        'Unsupported value: "Lists": supported values: "List", "System"',
        id="no type of defaults",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(maxSkew=0),
        "defaultConstraints[0].maxSkew",
        "Invalid value: 0: not in valid range (0, inf)",
        id="no skew",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(topologyKey=""),
        "defaultConstraints[0].topologyKey",
        "Required value: can not be empty",
        id="no topology",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(topologyKey="a/"),
        "defaultConstraints[0].topologyKey",
        'Invalid value: "a/": name part must be non-empty',
        id="a topology that no label can have",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(whenUnsatisfiable="Never"),
        "defaultConstraints[0].whenUnsatisfiable",
        'Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
        id="no such action",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(whenUnsatisfiable=None),
        "defaultConstraints[0].whenUnsatisfiable",
        "Required value: can not be empty",
        id="no action",
    ),
    pytest.param(
        "PodTopologySpread",
        _spread(labelSelector={}),
        "defaultConstraints[0].labelSelector",
        "Forbidden: constraint must not define a selector, as they deduced for each pod",
        id="a selector of its own",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": _spread()["defaultConstraints"] * 2},
        "defaultConstraints[1]",
        'Duplicate value: "{zone, ScheduleAnyway}"',
        id="a constraint twice",
    ),
    pytest.param(
        "NodeAffinity",
        {"addedAffinity": {_REQUIRED: {"nodeSelectorTerms": [_affinity(operator="Is")]}}},
        f"addedAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
        f'Unsupported value: "Is": {_OPERATORS}',
        id="an operator that there is not",
    ),
    pytest.param(
        "NodeAffinity",
        {"addedAffinity": {_PREFERRED: [{"weight": 1, "preference": _affinity(values=[])}]}},
        f"addedAffinity.{_PREFERRED}[0].preference.matchExpressions[0].values",
        "Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        id="a wish for nothing",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 101},
        "minCandidateNodesPercentage",
        "Invalid value: 101: not in valid range [0, 100]",
        id="more candidates than nodes",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesAbsolute": -1},
        "minCandidateNodesAbsolute",
        "Invalid value: -1: not in valid range [0, inf)",
        id="less than no candidate",
    ),
    pytest.param(
        "DynamicResources",
        {"bindingTimeout": "500ms"},
        "bindingTimeout",
        'Invalid value: "500ms": must be at least 1 second',
        id="no time to bind",
    ),
    pytest.param(
        "DynamicResources",
        {"filterTimeout": "-1s"},
        "filterTimeout",
        'Invalid value: "-1s": must be zero or positive',
        id="time that runs back",
    ),
    pytest.param(
        "DynamicResources",
        {"filterTimeout": "soon"},
        "filterTimeout",
        'time: invalid duration "soon"',
        id="no duration",
    ),
    pytest.param(
        "VolumeBinding",
        {"bindTimeoutSeconds": -1},
        "bindTimeoutSeconds",
        "Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
        id="time for volumes that runs back",
    ),
    pytest.param(
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 0}]},
        "shape",
        "unexpected field `shape`, remove it: the feature gate StorageCapacityScoring is off",
        id="a shape for volumes",
    ),
]
REFUSED_BEYOND_UPSTREAM = [
    pytest.param("NodeName", {"a": 1}, "a", "unknown field; NodeName takes no arguments", id="none are taken"),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"weight": 1}]}},
        "scoringStrategy.resources[0].name",
        "Required value",
        id="a resource without a name",
    ),
]


@pytest.mark.parametrize(("plugin", "args", "path", "message"), REFUSED_ARGUMENTS + REFUSED_BEYOND_UPSTREAM)
def test_arguments_are_refused(plugin: str, args: dict[str, Any], path: str, message: str) -> None:
    found = faults({**HEADER, "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]})
    assert found == {f"profiles[0].pluginConfig[0].args.{path}": message}


def test_both_minima_of_preemption_cannot_be_zero() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    found = faults({**HEADER, "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}]})
    assert [path.rpartition(".")[2] for path in found] == list(args)


def test_arguments_are_given_once_and_to_plugins_that_exist() -> None:
    config = [{"name": "NodePorts"}, {"name": "NodePorts"}, {"name": "NodePort"}, {}]
    assert faults({**HEADER, "profiles": [{"pluginConfig": config}]}) == {
        "profiles[0].pluginConfig[1].name": 'Duplicate value: "NodePorts"',
        "profiles[0].pluginConfig[2].name": "unknown plugin; did you mean NodePorts?",
        "profiles[0].pluginConfig[3].name": "Required value",
    }
