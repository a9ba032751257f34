"""Warnings: what is accepted and probably not meant."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.pods.affinity import PREFERRED, REQUIRED
from bayplan.cluster.embedded.admission.pods.strategy import STRATEGY
from bayplan.cluster.embedded.admission.pods.warnings import pod_template_warnings
from tests.cluster.admission.pod_specs import container
from tests.cluster.admission.whole_pods import created

NO_SELECTOR = "labelSelector: a null labelSelector results in matching no pod"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def files(*paths: str) -> list[Doc]:
    return [{"key": f"k{i}", "path": path} for i, path in enumerate(paths)]


def port(number: int, **more: object) -> Doc:
    return {"containerPort": number, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing to say"),
        pytest.param(
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
            id="an old node label",
        ),
        pytest.param(
            {"topologySpreadConstraints": [SPREAD]},
            [f"spec.topologySpreadConstraints[0].{NO_SELECTOR}"],
            id="a spread over no pods",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "z"}}]}}},
            [f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.{NO_SELECTOR}"],
            id="an affinity to no pods",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]},
            ["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
            id="a source that is gone",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {"name": "c", "items": files("a", "a/b")}}]},
            ['volume "v" (ConfigMap "c"): overlapping paths: "a/b" with "a"'],
            id="a file that is a directory",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [{"secret": {"name": "s", "items": files("t")}}, {"podCertificate": {}}]
                        },
                    }
                ]
            },
            ['volume "v" (Projected) has no sources provided'],
            id="a projection whose only source is behind a gate",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="pull secrets twice and without name",
        ),
        pytest.param(
            {"containers": [container(resources={"limits": {"memory": "1500m"}})]},
            [
                "spec.containers[0].resources.limits[memory]: fractional byte value "
                '"1500m" is invalid, must be an integer',
                "spec.containers[0].resources.requests[memory]: fractional byte value "
                '"1500m" is invalid, must be an integer',
            ],
            id="half a byte",
        ),
        pytest.param(
            {
                "containers": [
                    container(env=[{"name": "X", "value": "1"}, {"name": "X", "value": "$(X)2"}, {"name": "X"}])
                ]
            },
            ['spec.containers[0].env[2]: hides previous definition of "X", which may be dropped when using apply'],
            id="a variable that hides another",
        ),
        pytest.param(
            {
                "containers": [
                    container(
                        ports=[port(80, name="web"), port(80), port(80, hostPort=8080), port(1, hostIP="1.1.1.1")]
                    ),
                    container("b", ports=[port(81, name="web")]),
                ]
            },
            [
                "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
                "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
                "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
                "spec.containers[0].ports[3]: hostIP set without hostPort: {...}",
                'spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], services and '
                "probes that select ports by name will use spec.containers[0].ports[0]",
            ],
            id="ports on top of each other",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "::0:1"}, {"ip": "::0:1"}]},
            [
                'spec.hostAliases[0].ip: IPv6 address "::0:1" should be in RFC 5952 canonical format ("::1")',
                'spec.hostAliases[1].ip: IPv6 address "::0:1" should be in RFC 5952 canonical format ("::1")',
                'spec.hostAliases[1].ip: duplicate ip "::0:1"',
            ],
            id="an address in an odd spelling",
        ),
    ],
)
def test_pod(spec: Doc, expected: list[str]) -> None:
    assert sorted(STRATEGY.warn(created(**spec), None)) == expected


def test_a_name_that_is_no_hostname() -> None:
    assert STRATEGY.warn(created({"name": "a.b"}), None) == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
        "recommended: [must not contain dots]"
    ]


def test_updates_do_not_warn() -> None:
    doc = created(topologySpreadConstraints=[SPREAD])
    assert STRATEGY.warn(doc, doc) == []


def test_a_template_names_its_place_and_its_grace() -> None:
    template: Doc = {
        "metadata": {"annotations": {"security.alpha.kubernetes.io/sysctls": "x"}},
        "spec": {
            "containers": [],
            "terminationGracePeriodSeconds": -1,
            "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "z"}]}},
        },
    }
    assert sorted(pod_template_warnings(template, "spec.template")) == [
        "spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: "
        'non-functional in v1.11+; use the "sysctls" field instead',
        f"spec.template.spec.affinity.podAntiAffinity.{REQUIRED}[0].{NO_SELECTOR}",
        "spec.template.spec.terminationGracePeriodSeconds: "
        "must be >= 0; negative values are invalid and will be treated as 1",
    ]
