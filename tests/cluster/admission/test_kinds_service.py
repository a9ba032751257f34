"""Services: their rules, and the addresses and ports they are given."""

from __future__ import annotations

import copy
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.service_allocation import (
    ADDRESSES,
    NODE_PORTS,
    InternalError,
    InUse,
    allocate,
)
from bayplan.model.errors import ServerError
from tests.cluster.admission.test_kinds_rules import Fault, read, rules_of

RULES = rules_of("Service")


def service(**spec: object) -> Doc:
    """A Service, read and defaulted; one port unless it says otherwise."""
    return read("Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def stored(*others: Doc, **spec: object) -> Doc:
    """A Service as a create leaves it, beside others."""
    doc, errors = service(**spec), Errors()
    allocate(doc, None, InUse.of(others), errors)
    RULES.prepare(doc)
    RULES.validate(doc, errors)
    assert not errors
    return doc


def refused(doc: Doc, old: Doc | None = None, *others: Doc, dry_run: bool = False) -> list[Fault]:
    """Why a Service is not taken, in the order of work: allocation first, then the rules."""
    errors = Errors()
    allocate(doc, old, InUse.of([*others, *([old] if old else [])], dry_run=dry_run), errors)
    if not errors and old is None:
        RULES.prepare(doc)
        RULES.validate(doc, errors)
    elif not errors and old is not None:
        RULES.prepare_update(doc, old)
        RULES.validate_update(doc, old, errors)
    return [(cause.field, cause.message) for cause in errors]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"ports": []}, [("spec.ports", "Required value")], id="a Service has a port"),
        pytest.param({"ports": [], "clusterIP": "None"}, [], id="a headless one need not"),
        pytest.param(
            {"type": "Foo"},
            [
                (
                    "spec.type",
                    'Unsupported value: "Foo": supported values: "ClusterIP", "ExternalName", "LoadBalancer", '
                    '"NodePort"',
                )
            ],
            id="an unknown type",
        ),
        pytest.param(
            {"ports": [{"port": 80, "nodePort": 30000}]},
            [("spec.ports[0].nodePort", "Forbidden: may not be used when `type` is 'ClusterIP'")],
            id="a node port needs a type that has them",
        ),
        pytest.param(
            {"externalIPs": ["127.0.0.1", "0.0.0.0", "010.1.1.1"]},
            [
                (
                    "spec.externalIPs[0]",
                    'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
                ),
                ("spec.externalIPs[1]", 'Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)'),
                ("spec.externalIPs[2]", 'Invalid value: "010.1.1.1": must not have leading 0s'),
            ],
            id="addresses that nobody outside could mean",
        ),
        pytest.param(
            {"clusterIP": "None", "clusterIPs": ["None", "10.96.0.9"]},
            [
                (
                    "spec.clusterIPs",
                    'Invalid value: ["None","10.96.0.9"]: \'None\' must be the first and only value',
                )
            ],
            id="headless and not",
        ),
        pytest.param(
            {"ipFamilyPolicy": "RequireDualStack"},
            [
                (
                    "spec.ipFamilyPolicy",
                    'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
                )
            ],
            id="the cluster has one family",
        ),
        pytest.param(
            {"ipFamilies": ["IPv6"], "type": "Foo"},
            [("spec.ipFamilies[0]", 'Invalid value: "IPv6": not configured on this cluster')],
            id="what allocation refuses hides the rest",
        ),
        pytest.param(
            {"ipFamilies": ["IPv4", "IPv6"]},
            [
                (
                    "spec.ipFamilyPolicy",
                    "Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' "
                    "when multiple IP families are specified",
                )
            ],
            id="two families need a policy for two",
        ),
        pytest.param(
            {"clusterIP": "10.97.0.1"},
            [
                (
                    "spec.clusterIPs",
                    'Invalid value: ["10.97.0.1"]: failed to allocate IP 10.97.0.1: '
                    "the provided network does not match the current range",
                )
            ],
            id="an address of another network",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            [
                (
                    "spec.ports[0].nodePort",
                    "Invalid value: 80: provided port is not in the valid range. "
                    "The range of valid ports is 30000-32767",
                )
            ],
            id="a port that is no node port",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.96.0.9", "ipFamilyPolicy": "SingleStack"},
            [
                ("spec.clusterIPs", "Forbidden: may not be set for ExternalName services"),
                ("spec.ipFamilyPolicy", "Forbidden: may not be set for ExternalName services"),
            ],
            id="a mere name has no address",
        ),
    ],
)
def test_new_services(spec: Doc, expected: list[Fault]) -> None:
    assert refused(service(**spec)) == expected


def test_a_service_without_a_name_fails_on_its_address() -> None:
    (fault,) = refused(read("Service", metadata={}, spec={"ports": [{"port": 80}]}))
    assert fault == (
        "spec.clusterIPs",
        'Invalid value: [""]: failed to allocate IP: IPAddress.networking.k8s.io "10.96.1.1" is invalid: '
        "spec.parentRef.name: Required value",
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {"clusterIP": "10.96.0.9"},
            {"clusterIP": "10.96.0.10"},
            [("spec.clusterIPs[0]", 'Invalid value: ["10.96.0.10"]: may not change once set')],
            id="an address stays",
        ),
        pytest.param(
            {"type": "LoadBalancer", "loadBalancerClass": "x/y"},
            {"type": "LoadBalancer"},
            [("spec.loadBalancerClass", "Invalid value: null: may not change once set")],
            id="a load balancer's class stays",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31111},
            [("spec.healthCheckNodePort", "Forbidden: field is immutable")],
            id="a health check port stays",
        ),
        pytest.param(
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8"]},
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8 ", "10.0.0.2/8"]},
            [
                (
                    "spec.LoadBalancerSourceRanges[1]",
                    'Invalid value: "10.0.0.2/8": must not have bits set beyond the prefix length',
                )
            ],
            id="what was stored once is let pass again",
        ),
    ],
)
def test_changed_services(before: Doc, after: Doc, expected: list[Fault]) -> None:
    old, errors = service(**before), Errors()
    allocate(old, None, InUse.of([]), errors)
    RULES.prepare(old)
    assert not errors
    assert refused(service(**after), old) == expected


def test_a_sparse_update_keeps_what_was_given() -> None:
    old = stored(type="LoadBalancer", externalTrafficPolicy="Local")
    new = service(type="LoadBalancer", externalTrafficPolicy="Local")
    assert refused(new, old) == []
    assert new["spec"] == old["spec"]


def test_a_service_that_becomes_a_name_gives_its_addresses_back() -> None:
    old = stored(type="NodePort")
    new = copy.deepcopy(old)
    new["spec"] |= {"type": "ExternalName", "externalName": "a.b"}
    assert refused(new, old) == []
    assert new["spec"] == {
        "type": "ExternalName",
        "externalName": "a.b",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"a": "b"},
        "sessionAffinity": "None",
    }


def test_a_name_that_becomes_a_service_gets_an_address() -> None:
    old = stored(type="ExternalName", externalName="a.b")
    new = service()
    assert refused(new, old) == []
    assert ip_address(new["spec"]["clusterIP"]) in ADDRESSES


def test_a_headless_service_for_anything_is_open_to_both_families() -> None:
    doc = stored(clusterIP="None", selector={})
    assert (doc["spec"]["ipFamilies"], doc["spec"]["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")


def test_one_port_of_two_protocols_has_one_node_port() -> None:
    ports = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 54}]
    given_ports = [port["nodePort"] for port in stored(type="NodePort", ports=ports)["spec"]["ports"]]
    assert given_ports[0] == given_ports[1] != given_ports[2]


def test_what_another_service_has_is_refused() -> None:
    other = stored(type="NodePort", clusterIP="10.96.7.7", ports=[{"port": 80, "nodePort": 30123}])
    assert refused(service(clusterIP="10.96.7.7"), None, other) == [
        (
            "spec.clusterIPs",
            'Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: provided IP is already allocated',
        )
    ]
    asked = service(type="NodePort", ports=[{"port": 80, "nodePort": 30123}])
    assert refused(asked, None, other) == [
        ("spec.ports[0].nodePort", "Invalid value: 30123: provided port is already allocated")
    ]


def test_a_dry_run_looks_at_the_range_of_addresses_and_not_of_ports() -> None:
    asked = service(type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert refused(asked, dry_run=True) == []
    (fault,) = refused(service(clusterIP="1.2.3.4"), dry_run=True)
    assert fault[1].endswith(
        "the provided IP (1.2.3.4) is not in the valid range. The range of valid IPs is 10.96.0.0/16"
    )


def test_a_health_check_port_that_is_taken_is_the_servers_fault() -> None:
    other = stored(type="NodePort", ports=[{"port": 80, "nodePort": 30123}])
    asked = service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30123)
    with pytest.raises(InternalError, match="failed to allocate requested HealthCheck NodePort 30123: provided port"):
        refused(asked, None, other)


def test_a_node_port_twice_in_an_update_breaks_the_server() -> None:
    ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]
    with pytest.raises(ServerError, match=r"duplicate nodePort: \{TCP 30001\}"):
        refused(service(type="NodePort", ports=ports), stored(type="NodePort"))


@given(
    taken=st.sets(st.sampled_from(range(30086, 30100))),
    hosts=st.sets(st.integers(257, 270)),
)
def test_nothing_is_given_twice_and_the_same_state_gives_the_same(taken: set[int], hosts: set[int]) -> None:
    addresses = {ADDRESSES[host] for host in hosts}
    in_use = InUse(set(addresses), set(taken))
    assert in_use.next_port() == min(set(NODE_PORTS[86:]) - taken)
    assert in_use.next_address("x") not in addresses
    assert InUse(set(addresses), set(taken)).next_address("x") == min(in_use.addresses - addresses)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"clusterIP": "None", "sessionAffinity": "ClientIP", "loadBalancerIP": "1.2.3.4"},
            [
                "spec.loadBalancerIP is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
            id="a headless Service balances nothing",
        ),
        pytest.param(
            {"externalName": "a.b", "trafficDistribution": "PreferClose"},
            [
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
            id="fields of no use",
        ),
        pytest.param(
            {"loadBalancerSourceRanges": ["10.0.0.1/8", "2001:DB8::/32", "010.0.0.0/8"]},
            [
                'spec.loadBalancerSourceRanges[0]: CIDR value "10.0.0.1/8" is ambiguous in this context '
                '(should be "10.0.0.0/8" or "10.0.0.1/32"?)',
                'spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical '
                'format ("2001:db8::/32")',
                'spec.loadBalancerSourceRanges[2]: non-standard CIDR value "010.0.0.0/8" is invalid: use "10.0.0.0/8"',
            ],
            id="blocks that are badly written",
        ),
        pytest.param(
            {"loadBalancerIP": "::ffff:1.2.3.4"},
            ['spec.loadBalancerIP: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"'],
            id="an address in disguise",
        ),
    ],
)
def test_warnings(spec: Doc, expected: list[str]) -> None:
    doc = service(**spec)
    allocate(doc, None, InUse.of([]), Errors())
    assert RULES.warn(doc, None) == expected


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        pytest.param({"ip": "1.2.3.4"}, [], id="an address is a virtual one unless it says otherwise"),
        pytest.param(
            {"ipMode": "VIP"},
            [("status.loadBalancer.ingress[0].ipMode", "Forbidden: may not be specified when `ip` is not set")],
            id="a mode of no address",
        ),
        pytest.param(
            {"hostname": "1.2.3.4"},
            [
                (
                    "status.loadBalancer.ingress[0].hostname",
                    'Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
                )
            ],
            id="an address is no name",
        ),
    ],
)
def test_addresses_of_a_load_balancer(point: Doc, expected: list[Fault]) -> None:
    old, errors = stored(type="LoadBalancer"), Errors()
    new = read("Service", spec={"type": "LoadBalancer"}, status={"loadBalancer": {"ingress": [point]}})
    RULES.prepare_status(new, old)
    RULES.validate_status(new, old, errors)
    assert [(cause.field, cause.message) for cause in errors] == expected
