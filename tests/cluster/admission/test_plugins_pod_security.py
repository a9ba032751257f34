"""Pod Security Standards: every check in its own words, and the labels that ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.pod_security.standards import findings
from bayplan.model.errors import Forbidden, Invalid
from tests.cluster.admission.plugin_bench import container, pod, submit, thing

LABEL = "pod-security.kubernetes.io/"
TIGHT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def secured(name: str = "c", **context: Any) -> Doc:
    return container(name, securityContext=context)


def tight(name: str = "c", **context: Any) -> Doc:
    return secured(name, **TIGHT | context)


def namespace(**labels: str) -> Doc:
    found = thing("Namespace", "secure")
    found["metadata"]["labels"] = {LABEL + key.replace("_", "-"): value for key, value in labels.items()}
    return found


@pytest.mark.parametrize(
    ("subject", "finding"),
    [
        pytest.param(
            pod(secured("a", privileged=True), secured("b", privileged=True)),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
            id="privileged",
        ),
        pytest.param(
            pod(hostNetwork=True, hostIPC=True), "host namespaces (hostNetwork=true, hostIPC=true)", id="host"
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}}]),
            'hostPath volumes (volume "v")',
            id="hostPath",
        ),
        pytest.param(
            pod(container(ports=[{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 1}])),
            'hostPort (container "c" uses hostPorts 443, 80)',
            id="host ports in the order of text",
        ),
        pytest.param(
            pod(
                container("b", livenessProbe={"httpGet": {"host": "h"}}),
                container("a", lifecycle={"preStop": {"tcpSocket": {"host": "g"}}}),
            ),
            'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "g", "h")',
            id="probes of other hosts",
        ),
        pytest.param(
            pod(secured(capabilities={"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]})),
            'non-default capabilities (container "c" must not include "NET_RAW", "SYS_ADMIN" in '
            "securityContext.capabilities.add)",
            id="capabilities",
        ),
        pytest.param(
            pod(secured(procMount="Unmasked")),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
            id="procMount",
        ),
        pytest.param(
            pod(
                secured(seLinuxOptions={"type": "spc_t", "user": "u"}),
                securityContext={"seLinuxOptions": {"role": "r", "type": "container_engine_t"}},
            ),
            'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: '
            'type "spc_t"; user may not be set; role may not be set)',
            id="SELinux",
        ),
        pytest.param(
            pod(
                secured(seccompProfile={"type": "Unconfined"}),
                securityContext={"seccompProfile": {"type": "Localhost"}},
            ),
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
            id="seccomp switched off",
        ),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}),
            "forbidden sysctls (kernel.msgmax)",
            id="sysctls",
        ),
        pytest.param(
            pod(securityContext={"windowsOptions": {"hostProcess": True}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            id="Windows host processes",
        ),
        pytest.param(
            pod(secured(appArmorProfile={"type": "Unconfined"})),
            'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
            id="AppArmor",
        ),
    ],
)
def test_baseline(subject: Doc, finding: str) -> None:
    assert [str(one) for one in findings("baseline", 36, {}, subject["spec"])] == [finding]


@pytest.mark.parametrize(
    ("subject", "finding"),
    [
        pytest.param(
            pod(tight(allowPrivilegeEscalation=True)),
            'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)',
            id="privilege escalation",
        ),
        pytest.param(
            pod(tight("a", capabilities={"add": ["NET_RAW"]}), tight("b", capabilities={})),
            'unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]; '
            'container "a" must not include "NET_RAW" in securityContext.capabilities.add)',
            id="capabilities",
        ),
        pytest.param(
            pod(tight(), volumes=[{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {}}]),
            'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
            id="volumes, hostPath among them",
        ),
        pytest.param(
            pod(tight(runAsNonRoot=False), securityContext={"runAsNonRoot": False}),
            'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
            id="root on purpose",
        ),
        pytest.param(
            pod(tight(runAsUser=0), securityContext={"runAsUser": 0}),
            'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
            id="user 0",
        ),
        pytest.param(
            pod(tight(procMount="Unmasked"), hostUsers=False),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
            id="procMount even with users of its own",
        ),
        pytest.param(
            pod(tight("a"), secured("b", **{key: value for key, value in TIGHT.items() if key != "seccompProfile"})),
            'seccompProfile (pod or container "b" must set securityContext.seccompProfile.type to '
            '"RuntimeDefault" or "Localhost")',
            id="no seccomp profile",
        ),
    ],
)
def test_restricted(subject: Doc, finding: str) -> None:
    assert [str(one) for one in findings("restricted", 36, {}, subject["spec"])] == [finding]


@pytest.mark.parametrize(
    ("level", "minor", "annotations", "subject", "reasons"),
    [
        pytest.param("restricted", 36, {}, pod(tight()), [], id="a tight pod passes"),
        pytest.param("restricted", 36, {}, pod(os={"name": "windows"}), ["runAsNonRoot != true"], id="Windows"),
        pytest.param("restricted", 36, {}, pod(tight(runAsNonRoot=False), hostUsers=False), [], id="users of its own"),
        pytest.param(
            "restricted", 34, {}, pod(tight(runAsNonRoot=False), hostUsers=False), ["runAsNonRoot != true"], id="1.34"
        ),
        pytest.param("restricted", 7, {}, pod(), ["runAsNonRoot != true"], id="1.7 knew little"),
        pytest.param(
            "baseline",
            18,
            {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
            pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            ["seccompProfile"],
            id="1.18 knew seccomp as an annotation",
        ),
        pytest.param(
            "baseline",
            36,
            {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
            pod(secured(appArmorProfile={"type": "Unconfined"})),
            ["forbidden AppArmor profiles"],
            id="AppArmor in both forms",
        ),
        pytest.param(
            "baseline",
            31,
            {},
            pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}),
            ["forbidden sysctls"],
            id="a sysctl that was not safe yet",
        ),
        pytest.param("privileged", 36, {}, pod(hostPID=True), [], id="privileged allows all"),
    ],
)
def test_versions_and_exceptions(level: str, minor: int, annotations: Doc, subject: Doc, reasons: list[str]) -> None:
    assert [one.reason for one in findings(level, minor, annotations, subject["spec"])] == reasons


def test_all_violations_are_told_baseline_first() -> None:
    with pytest.raises(Forbidden) as refused:
        submit(pod(container(ports=[{"hostPort": 80}])), namespace(enforce="restricted"), namespace="secure")
    assert refused.value.message == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": hostPort (container "c" uses hostPort 80), '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to '
        '"RuntimeDefault" or "Localhost")'
    )


HOST = "host namespaces (hostPID=true)"


@pytest.mark.parametrize(
    ("labels", "warnings"),
    [
        pytest.param({}, [], id="no labels"),
        pytest.param({"warn": "baseline"}, [f'would violate PodSecurity "baseline:latest": {HOST}'], id="a warning"),
        pytest.param({"audit": "restricted"}, [], id="audit is silent"),
        pytest.param(
            {"warn": "baseline", "warn_version": "v1.20"},
            [f'would violate PodSecurity "baseline:v1.20": {HOST}'],
            id="a warning of another version",
        ),
        pytest.param({"warn": "bogus"}, [], id="an unreadable label warns of nothing"),
    ],
)
def test_warnings_for_pods(labels: dict[str, str], warnings: list[str]) -> None:
    assert submit(pod(hostPID=True), namespace(**labels), namespace="secure")[0].warnings == warnings


@pytest.mark.parametrize("kind", ["Deployment", "Job", "CronJob"])
def test_templates_are_only_warned_about(kind: str) -> None:
    template = {"template": {"metadata": {}, "spec": pod(hostPID=True)["spec"]}}
    spec = {"jobTemplate": {"spec": template}} if kind == "CronJob" else template
    request, _ = submit(thing(kind, "d", spec=spec), namespace(enforce="baseline"), namespace="secure")
    assert request.warnings == [f'would violate PodSecurity "baseline:latest": {HOST}']


def test_an_update_is_judged_only_if_an_image_changes() -> None:
    bad = pod(hostPID=True)
    submit(bad, namespace(enforce="baseline"), namespace="secure", old=bad)
    newer = pod(container(image="x:2"), hostPID=True)
    with pytest.raises(Forbidden):
        submit(newer, namespace(enforce="baseline"), namespace="secure", old=bad)


def test_a_namespace_must_say_it_right() -> None:
    with pytest.raises(Invalid) as refused:
        submit(namespace(enforce="Foo", warn_version="1.2"))
    assert [(cause.field, cause.message) for cause in refused.value.causes] == [
        (f"metadata.labels[{LABEL}enforce]", 'Invalid value: "Foo": must be one of privileged, baseline, restricted'),
        (f"metadata.labels[{LABEL}warn-version]", 'Invalid value: "1.2": must be "latest" or "v1.x"'),
    ]
    submit(namespace(enforce="Foo"), old=namespace(enforce="Foo"))


def test_raising_the_level_tells_of_the_pods_inside() -> None:
    inside = [pod(hostPID=True) for _ in range(3)] + [pod(), pod(hostIPC=True, hostPID=True)]
    for i, one in enumerate(inside):
        one["metadata"] = {"name": f"p{i}", "namespace": "secure"}
    inside[4]["spec"]["containers"] = [secured(privileged=True)]
    request, _ = submit(namespace(enforce="baseline"), *inside, old=namespace(warn="baseline"))
    assert request.warnings == [
        'existing pods in namespace "secure" violate the new PodSecurity enforce level "baseline:latest"',
        "p0 (and 2 other pods): host namespaces",
        "p4: host namespaces, privileged",
    ]
    lower, _ = submit(namespace(enforce="baseline"), *inside, old=namespace(enforce="restricted"))
    assert lower.warnings == []
