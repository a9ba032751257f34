"""A KubeSchedulerConfiguration that is wrong is refused, each fault with its path."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduling.configuration import ConfigurationError, Fault, read_configuration
from bayplan.scheduling.profiles import PLUGINS
from tests.scheduling.test_configuration import HEADER, faults, plugin_set


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        pytest.param({"apiVersion": None}, "apiVersion", "Required value", id="no version"),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "apiVersion",
            'expected kubescheduler.config.k8s.io/v1, not "kubescheduler.config.k8s.io/v1beta3"',
            id="a version that is gone",
        ),
        pytest.param(
            {"kind": "Policy"}, "kind", 'expected KubeSchedulerConfiguration, not "Policy"', id="another kind"
        ),
        pytest.param({"profile": []}, "profile", "unknown field; did you mean profiles?", id="an unknown field"),
        pytest.param({"profiles": {}}, "profiles", "expected a list, not {}", id="no list"),
        pytest.param({"profiles": ["x"]}, "profiles[0]", 'expected a mapping, not "x"', id="no profile"),
        pytest.param({"parallelism": "16"}, "parallelism", 'expected a whole number, not "16"', id="a text"),
        pytest.param({"parallelism": True}, "parallelism", "expected a whole number, not true", id="a truth"),
        pytest.param({"enableProfiling": 1}, "enableProfiling", "expected true or false, not 1", id="no truth"),
        pytest.param(
            {"parallelism": 2**31},
            "parallelism",
            "Invalid value: 2147483648: not in valid range [-2147483648, 2147483647]",
            id="more than 32 bits",
        ),
        pytest.param(
            {"parallelism": 0},
            "parallelism",
            "Invalid value: 0: should be an integer value greater than zero",
            id="nobody works",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore",
            "Invalid value: 101: not in valid range [0-100]",
            id="more than all nodes",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds",
            "Invalid value: 0: must be greater than 0",
            id="no back-off",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 20},
            "podMaxBackoffSeconds",
            "Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
            id="a back-off that begins above its end",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://extender"}]},
            "extenders",
            "not supported: an extender is another program's answer, which cannot be foreseen here",
            id="an extender",
        ),
        pytest.param(
            {"leaderElection": {"leaderElected": True}},
            "leaderElection.leaderElected",
            "unknown field; did you mean leaderElect?",
            id="an unknown field where nothing has effect",
        ),
        pytest.param(
            {"profiles": [{}, {"schedulerName": "b"}]},
            "profiles[0].schedulerName",
            "Required value",
            id="a name is needed as soon as there are two",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName", "Required value", id="an empty name"
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName",
            'Duplicate value: "a": profiles[0] has it',
            id="two of a name",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
                    {"schedulerName": "b"},
                ]
            },
            "profiles[1].plugins.queueSort",
            "must be the same for all profiles",
            id="two orders for one queue",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            "profiles[0].percentageOfNodesToScore",
            "Invalid value: -1: not in valid range [0-100]",
            id="less than no node",
        ),
    ],
)
def test_a_document_is_refused(document: dict[str, Any], path: str, message: str) -> None:
    assert faults({**HEADER, **document}) == {path: message}


@pytest.mark.parametrize("document", [None, [], "profiles", 3])
def test_what_is_no_mapping_is_refused(document: Any) -> None:
    assert list(faults(document)) == [""]


_ALLOWED = ", ".join(PLUGINS)


@pytest.mark.parametrize(
    ("sets", "path", "message"),
    [
        pytest.param({"scores": ""}, "scores", "unknown field; did you mean score?", id="an unknown point"),
        pytest.param(
            {"score": "NodeResourceFit=2"},
            "score.enabled[0].name",
            "unknown plugin; did you mean NodeResourcesFit?",
            id="an unknown plugin",
        ),
        pytest.param(
            {"filter": "-Xyz"}, "filter.disabled[0].name", f"unknown plugin; allowed are {_ALLOWED}", id="disabled, too"
        ),
        pytest.param({"score": "*"}, "score.enabled[0].name", f"unknown plugin; allowed are {_ALLOWED}", id="a star"),
        pytest.param(
            {"multiPoint": "EBSLimits"},
            "multiPoint.enabled[0].name",
            "EBSLimits was removed; NodeVolumeLimits does its work",
            id="a plugin of former days",
        ),
        pytest.param(
            {"multiPoint": "GangScheduling"},
            "multiPoint.enabled[0].name",
            "GangScheduling needs the feature gate GangScheduling, which is off",
            id="a plugin of a gate",
        ),
        pytest.param(
            {"score": "ImageLocality NodePorts"},
            "score.enabled[1].name",
            "NodePorts has no score; it has filter, preFilter",
            id="a plugin where it has nothing to say",
        ),
        pytest.param(
            {"score": "ImageLocality ImageLocality=2"},
            "score.enabled[1].name",
            'Duplicate value: "ImageLocality"',
            id="twice at a point",
        ),
        pytest.param(
            {"multiPoint": "ImageLocality ImageLocality"},
            "multiPoint.enabled[1].name",
            'Duplicate value: "ImageLocality"',
            id="twice at multiPoint",
        ),
        pytest.param(
            {"score": "ImageLocality=-4"},
            "score",
            "total score of Score plugins could overflow: weights are negative",
            id="a weight below 0 that nothing outweighs",
        ),
        pytest.param(
            {"bind": "-*"},
            "bind",
            "Required value: one bind plugin is needed, and none is enabled",
            id="nobody to bind",
        ),
        pytest.param(
            {"queueSort": "-PrioritySort"},
            "queueSort",
            "Required value: one queue sort plugin is needed, and none is enabled",
            id="no order for the queue",
        ),
        pytest.param(
            {"preFilter": "-NodePorts -NodeResourcesFit -NodeAffinity"},
            "preFilter",
            "NodePorts, NodeResourcesFit would filter without preFilter, which would fail for every pod: "
            "disable both, or none",
            id="filters that are not prepared",
        ),
        pytest.param(
            {"preScore": "-TaintToleration -NodeResourcesFit"},
            "preScore",
            "TaintToleration would score without preScore, which would fail for every pod: disable both, or none",
            id="scores that are not prepared",
        ),
    ],
)
def test_plugins_are_refused(sets: dict[str, str], path: str, message: str) -> None:
    plugins = {point: plugin_set(names) for point, names in sets.items()}
    found = faults({**HEADER, "profiles": [{"plugins": plugins}]})
    assert found == {f"profiles[0].plugins.{path}": message}


_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-2, 200), st.sampled_from(["", "*", "System", *PLUGINS]))
_WORDS = st.sampled_from(
    re.findall(r"\w+", "name weight enabled disabled args plugins pluginConfig schedulerName score filter multiPoint")
) | st.sampled_from(["scoringStrategy", "type", "resources", "shape", "defaultConstraints", "addedAffinity"])
_DOCUMENTS = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4), max_leaves=12
)


@given(_DOCUMENTS)
def test_whatever_stands_there_is_read_or_refused(anything: Any) -> None:
    wrong: tuple[Fault, ...] = ()
    try:
        read_configuration({**HEADER, "profiles": anything})
    except ConfigurationError as error:
        wrong = error.faults
    assert all(fault.path.startswith("profiles") and fault.message for fault in wrong)
