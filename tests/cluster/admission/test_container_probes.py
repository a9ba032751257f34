"""Probes, hooks and security contexts of a container."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from tests.cluster.admission.pod_specs import container, container_faults, faults, pod_spec

EXEC = {"exec": {"command": ["true"]}}
NEGATIVE = "must be greater than or equal to 0"


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        pytest.param({"exec": {"command": ["true"]}}, [], id="a command"),
        pytest.param({"httpGet": {"port": "http"}}, [], id="a named port"),
        pytest.param({"tcpSocket": {"port": 80}, "successThreshold": 0}, [], id="zero is left out"),
        pytest.param({}, [": Required value: must specify a handler type"], id="nothing to do"),
        pytest.param(
            {"exec": {}, "tcpSocket": {"port": 0}},
            [
                ".exec.command: Required value",
                ".tcpSocket: Forbidden: may not specify more than 1 handler type",
            ],
            id="of two handlers the first is checked and the second forbidden",
        ),
        pytest.param(
            {"httpGet": {"port": "-a", "scheme": "FTP", "httpHeaders": [{"name": "a b", "value": ""}]}},
            [
                '.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric '
                "characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
                '.httpGet.port: Invalid value: "-a": must not begin or end with a hyphen',
                '.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
            ],
            id="each part of a request",
        ),
        pytest.param(
            {"grpc": {"port": 0, "service": None}},
            [".grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
            id="a port out of range",
        ),
        pytest.param(
            {**EXEC, "periodSeconds": -1, "successThreshold": 2, "terminationGracePeriodSeconds": 0},
            [
                f".periodSeconds: Invalid value: -1: {NEGATIVE}",
                ".successThreshold: Invalid value: 2: must be 1",
                ".terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
            ],
            id="numbers out of range",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["livenessProbe", "startupProbe"])
def test_probes(kind: str, probe: Doc, expected: list[str]) -> None:
    given = {key: dict(value) if isinstance(value, dict) else value for key, value in probe.items()}
    assert container_faults(**{kind: given}) == [f"{kind}{fault}" for fault in expected]


def test_a_readiness_probe_may_want_several_successes_but_stops_nothing() -> None:
    assert container_faults(readinessProbe={**EXEC, "successThreshold": 2, "terminationGracePeriodSeconds": 5}) == [
        "readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"
    ]


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        pytest.param({"sleep": {"seconds": 0}}, [], id="no sleep"),
        pytest.param({"sleep": {"seconds": 30}}, [], id="sleep as long as there is time"),
        pytest.param(
            {"sleep": {"seconds": 31}},
            [".sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"],
            id="sleep longer than there is time",
        ),
        pytest.param(
            {"exec": {"command": ["true"]}, "sleep": {"seconds": 31}},
            [".sleep: Forbidden: may not specify more than 1 handler type"],
            id="a second handler is not looked at",
        ),
        pytest.param({}, [": Required value: must specify a handler type"], id="nothing to do"),
    ],
)
@pytest.mark.parametrize("kind", ["postStart", "preStop"])
def test_hooks(kind: str, hook: Doc, expected: list[str]) -> None:
    assert container_faults(lifecycle={kind: hook}) == [f"lifecycle.{kind}{fault}" for fault in expected]


def user_name(name: str, *texts: str) -> Any:
    shown = name.replace("\\", "\\\\")
    found = [f'.windowsOptions.runAsUserName: Invalid value: "{shown}": runAsUserName{text}' for text in texts]
    return pytest.param({"windowsOptions": {"runAsUserName": name}}, found, id=f"the user {name!r} of Windows")


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        pytest.param({"privileged": True, "runAsUser": 0, "procMount": "Default"}, [], id="a privileged root"),
        pytest.param(
            {"runAsUser": -1, "runAsGroup": 2**31},
            [
                ".runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
                ".runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
            id="ids out of range",
        ),
        pytest.param(
            {"procMount": "Unmasked"},
            ['.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
            id="all of /proc with the users of the host",
        ),
        pytest.param(
            {"procMount": "Some"},
            ['.procMount: Unsupported value: "Some": supported values: "Default", "Unmasked"'],
            id="an unknown proc mount",
        ),
        pytest.param(
            {"allowPrivilegeEscalation": False, "privileged": True, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
            [
                ": Invalid value: {...}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN",
                ": Invalid value: {...}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            ],
            id="no escalation, yet privileged",
        ),
        pytest.param(
            {"seccompProfile": {"type": "Localhost", "localhostProfile": "/x"}, "appArmorProfile": {"type": ""}},
            [
                ".appArmorProfile.type: Required value: type is required when appArmorProfile is set",
                '.seccompProfile.localhostProfile: Invalid value: "/x": must be a relative path',
            ],
            id="profiles that name no file",
        ),
        pytest.param(
            {
                "seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
                "appArmorProfile": {"type": "Unconfined", "localhostProfile": "x"},
            },
            [
                '.appArmorProfile.localhostProfile: Invalid value: "x": '
                "can only be set when AppArmor type is Localhost",
                '.seccompProfile.localhostProfile: Invalid value: {"LocalhostProfile":"x","Type":"RuntimeDefault"}: '
                "can only be set when seccomp type is Localhost",
            ],
            id="profiles that need no file",
        ),
        pytest.param(
            {
                "seccompProfile": {"type": "Localhost"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": " x"},
            },
            [
                '.appArmorProfile.localhostProfile: Invalid value: " x": must not be padded with whitespace',
                ".seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            ],
            id="profiles without a good file",
        ),
        user_name("CORP\\ada"),
        user_name("", " cannot be an empty string"),
        user_name("a\\b\\c", " cannot contain more than one backslash"),
        user_name(".a/\\", "'s Domain doesn't match the NetBios nor the DNS format", "'s User cannot be empty"),
        user_name(". .", "'s User cannot contain only periods or spaces"),
    ],
)
def test_security_contexts(context: Doc, expected: list[str]) -> None:
    assert container_faults(securityContext=context) == [f"securityContext{fault}" for fault in expected]


def test_all_of_proc_is_fine_with_users_of_its_own() -> None:
    assert faults(pod_spec(container(securityContext={"procMount": "Unmasked"}), hostUsers=False)) == []
