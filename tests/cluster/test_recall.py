"""Remembered admission changes nothing: a server that recalls and one that never does answer and store the same.

Names and uids come from the revision here, so that two servers with the same history make up the same ones.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.body import part_pod, read_metadata, split_pod
from bayplan.cluster.embedded.admission.recall import Recall
from bayplan.cluster.embedded.bootstrap import bootstrap
from bayplan.cluster.embedded.requests import PLAIN, WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    Kind,
)
from bayplan.cluster.objects import Section, sections_of
from bayplan.model.clock import Instant
from bayplan.model.errors import ApiError
from bayplan.model.meta import ObjectMeta, OwnerReference

Doc = dict[str, Any]
Step = tuple[Any, ...]
HOMES = ("plain", "strict")


class _Forgetful(Recall):
    def find(self, namespace: str, spec: bytes, meta: Doc) -> None:
        return None


class SteadyServer(Server):
    """A server whose choices follow from its history."""

    def __init__(self, *, recalls: bool) -> None:
        super().__init__(Store(), lambda: Instant(10**15 + self.store.revision * 10**6), random.Random(0))
        if not recalls:
            self._recall = _Forgetful(self.store)
        bootstrap(self)
        for name in HOMES:
            self.create(NAMESPACE, "", {"metadata": {"name": name}})

    def uid(self) -> str:
        return f"uid-{self.store.revision}"

    def suffix(self) -> str:
        return f"{self.store.revision:05}"[-5:]

    def answer(self, step: Step) -> Doc:
        """What a step leads to, whether it succeeds or not."""
        try:
            result = getattr(self, f"do_{step[0]}")(*step[1:])
        except ApiError as error:
            return error.to_status()
        return {"object": result.object.raw().decode(), "warnings": result.warnings}

    def do_pod(self, namespace: str, meta: str, spec: str, options: WriteOptions = PLAIN) -> Any:
        body = f'{{"apiVersion":"v1","kind":"Pod","metadata":{meta},"spec":{spec}}}'
        return self.create(POD, namespace, body.encode(), options)

    def do_raw(self, namespace: str, body: bytes) -> Any:
        return self.create(POD, namespace, body)

    def do_make(self, kind: Kind, namespace: str, body: Doc) -> Any:
        return self.create(kind, namespace, body)

    def do_merge(self, kind: Kind, namespace: str, name: str, patch: Doc) -> Any:
        return self.patch(kind, namespace, name, "application/merge-patch+json", json.dumps(patch).encode())

    def do_stamp(self, namespace: str, meta: ObjectMeta, section: Section) -> Any:
        stored = self.stamp(POD, meta, {"spec": section})
        return type("Answer", (), {"object": stored, "warnings": ()})

    def do_drop(self, kind: Kind, namespace: str, name: str) -> Any:
        return type("Answer", (), {"object": self.delete(kind, namespace, name), "warnings": ()})

    def history(self) -> list[bytes]:
        return [item.raw() for kind in [*self.store.kinds()] for item in self.store.objects(kind)]


def assert_alike(*steps: Step) -> list[Doc]:
    """Both servers go through the steps; every answer and all that is stored must agree."""
    recalling, forgetful = SteadyServer(recalls=True), SteadyServer(recalls=False)
    answers = []
    for step in steps:
        ours, theirs = recalling.answer(step), forgetful.answer(step)
        assert ours == theirs, step
        answers.append(ours)
    assert recalling.history() == forgetful.history()
    assert recalling.store.revision == forgetful.store.revision
    return answers


def spec(**more: Any) -> str:
    return json.dumps({"containers": [{"name": "main", "image": "registry.example/app:1"}], **more})


def meta(name: str, **more: Any) -> str:
    return json.dumps({"name": name, **more})


LIMITED = {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}
AFFINITY = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone", "matchLabelKeys": ["app"]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
VOLUME = {
    "name": "scratch",
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        }
    },
}
SPECS = [
    spec(),
    spec(**LIMITED),
    spec(priorityClassName="gold"),
    spec(runtimeClassName="boxed"),
    spec(nodeName="zoned"),
    spec(schedulingGates=[{"name": "example.com/wait"}]),
    spec(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AFFINITY]}}),
    spec(topologySpreadConstraints=[{**SPREAD, "matchLabelKeys": ["app"]}]),
    spec(topologySpreadConstraints=[{**SPREAD, "matchLabelKeys": ["app"]}]).replace(
        "matchLabelKeys", r"match\u004cabelKeys"
    ),
    spec(schedulingGates=[{"name": "example.com/wait"}]).replace("schedulingGates", r"scheduling\u0047ates"),
    spec(volumes=[VOLUME]),
    spec(hostNetwork=True),
    spec(hostname="me", subdomain="us"),
    spec(nodeSelector={"beta.kubernetes.io/os": "linux"}),
    spec(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    spec(unknown=1),
    spec(containers=[]),
    spec()[:-1] + ',"hostPID":true,"hostPID":false}',
    spec()[:-1] + ',"restartPolicy":5}',
]
NOTES = [
    {},
    {"example.com/note": "x"},
    {"controller.kubernetes.io/pod-deletion-cost": "5"},
    {"controller.kubernetes.io/pod-deletion-cost": "much"},
    {"kubernetes.io/config.mirror": "x"},
    {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
    {"container.apparmor.security.beta.kubernetes.io/main": "nonsense"},
    {"scheduler.alpha.kubernetes.io/critical-pod": ""},
    {"security.alpha.kubernetes.io/sysctls": "a=b"},
    {"pod.beta.kubernetes.io/init-containers": "[]"},
    {"kubernetes.io/limit-ranger": "x", "Bad Key": ""},
]
METAS = [
    *({"annotations": notes} for notes in NOTES),
    {"labels": {"app": "one"}},
    {"labels": {"app": "two"}},
    {"labels": {"app": "no good"}},
    {"finalizers": ["example.com/hold"]},
    {"finalizers": ["bare"]},
    {"namespace": "plain"},
    {"namespace": "strict"},
    {"resourceVersion": "5"},
    {"resourceVersion": "x"},
    {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"},
    {"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5},
    {"managedFields": [{"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "j", "uid": "u"}]},
    {"generateName": "gen-"},
    {"unknown": 1},
    {"labels": []},
]
NAMES = ("a", "b", "c", "with.dot", "Bad", "x" * 64)

homes = st.sampled_from(HOMES)
metas = st.builds(
    lambda name, more: meta(name, **more), st.sampled_from(NAMES), st.sampled_from(METAS)
) | st.sampled_from(
    [
        json.dumps({"generateName": "gen-"}),
        json.dumps({"generateName": "g" * 60}),
        "null",
        "{}",
        '{"name":"d","name":"e"}',
        "[]",
    ]
)
specs = st.sampled_from(SPECS)
PSA = "pod-security.kubernetes.io/"
worlds = st.sampled_from(
    [
        ("make", RESOURCE_QUOTA, "plain", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}),
        ("drop", RESOURCE_QUOTA, "plain", "q"),
        (
            "make",
            LIMIT_RANGE,
            "plain",
            {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
        ),
        ("drop", LIMIT_RANGE, "plain", "l"),
        ("make", PRIORITY_CLASS, "", {"metadata": {"name": "gold"}, "value": 10}),
        ("make", PRIORITY_CLASS, "", {"metadata": {"name": "all"}, "value": 5, "globalDefault": True}),
        ("drop", PRIORITY_CLASS, "", "all"),
        ("drop", PRIORITY_CLASS, "", "gold"),
        (
            "make",
            RUNTIME_CLASS,
            "",
            {"metadata": {"name": "boxed"}, "handler": "box", "overhead": {"podFixed": {"cpu": "1"}}},
        ),
        ("drop", RUNTIME_CLASS, "", "boxed"),
        ("make", NODE, "", {"metadata": {"name": "zoned", "labels": {"topology.kubernetes.io/zone": "z"}}}),
        ("drop", NODE, "", "zoned"),
        ("merge", NAMESPACE, "", "strict", {"metadata": {"labels": {f"{PSA}enforce": "restricted"}}}),
        ("merge", NAMESPACE, "", "strict", {"metadata": {"labels": {f"{PSA}enforce": None, f"{PSA}warn": "baseline"}}}),
        ("drop", NAMESPACE, "", "strict"),
        ("drop", POD, "plain", "a"),
        ("drop", POD, "plain", "b"),
    ]
)
pods = st.tuples(st.just("pod"), homes, metas, specs)


@settings(max_examples=120, deadline=None)
@given(chosen=st.lists(specs, min_size=1, max_size=3), data=st.data())
def test_no_history_makes_the_remembered_way_differ(chosen: list[str], data: st.DataObject) -> None:
    few = st.tuples(st.just("pod"), homes, metas, st.sampled_from(chosen))
    assert_alike(*data.draw(st.lists(few | few | few | pods | worlds, max_size=25)))


@pytest.mark.parametrize("more", METAS, ids=json.dumps)
def test_no_metadata_makes_the_remembered_way_differ(more: Doc) -> None:
    steps: list[Step] = []
    for number, body in enumerate(SPECS):
        plain, odd = [(f"{sort}{number}", extra) for sort, extra in (("plain", {}), ("odd", more))]
        for home, order in (("plain", (plain, odd)), ("strict", (odd, plain))):
            for turn in "12":
                steps += [("pod", home, meta(f"{name}-{turn}", **extra), body) for name, extra in order]
    assert_alike(*steps)


def body_of(text: str) -> tuple[Step, Step]:
    return ("pod", "plain", meta("first"), spec()), ("raw", "plain", text.replace("SPEC", spec()).encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            '{"apiVersion":"v1","apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":SPEC}',
            id="a version twice",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","kind":"Pod","metadata":{"name":"a"},"spec":SPEC}', id="a kind twice"
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"metadata":{"name":"b"},"spec":SPEC}',
            id="metadata twice",
        ),
        pytest.param(
            r'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"sp\u0065c":{},"spec":SPEC}',
            id="a spec under two spellings",
        ),
        pytest.param(
            r'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":SPEC,"sp\u0065c":{"hostPID":true}}',
            id="the other way round",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":SPEC,"status":{"phase":"Running"}}',
            id="a status",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":SPEC,"colour":1}', id="an unknown field"
        ),
        pytest.param('{"apiVersion":"v2","kind":"Pod","metadata":{"name":"a"},"spec":SPEC}', id="another version"),
        pytest.param('{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":SPEC}', id="another kind"),
        pytest.param('{"metadata":{"name":"a"},"spec":SPEC}', id="no kind"),
        pytest.param('{"apiVersion":"v1","kind":"Pod","spec":SPEC}', id="no metadata"),
        pytest.param('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":SPEC} x', id="something behind"),
        pytest.param(' {"apiVersion" : "v1" ,"kind":"Pod",\n"metadata":{"name":"a"},"spec":SPEC}\n', id="spaces"),
        pytest.param(
            '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\\u0061"},"spec":SPEC}', id="an escaped name"
        ),
    ],
)
def test_no_body_makes_the_remembered_way_differ(text: str) -> None:
    assert_alike(*body_of(text))


@pytest.mark.parametrize(
    "options",
    [
        WriteOptions(dry_run=True),
        WriteOptions(field_manager="me"),
        WriteOptions(validation="Strict"),
        WriteOptions(validation="Ignore"),
    ],
    ids=["a dry run", "a manager", "strict", "lenient"],
)
def test_no_option_makes_the_remembered_way_differ(options: WriteOptions) -> None:
    assert_alike(
        ("pod", "plain", meta("first"), spec()),
        ("pod", "plain", meta("a"), spec(), options),
        ("pod", "plain", meta("b"), spec()),
    )


@pytest.mark.parametrize("body", SPECS, ids=range(len(SPECS)))
def test_stamping_is_creating(body: str) -> None:
    """A controller's pods and a client's share what is remembered; the template's bytes are the key of both."""
    section = sections_of({"spec": json.loads(body)})["spec"]
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="u", controller=True)
    metas = [
        ObjectMeta(generate_name="gen-", namespace="plain", labels={"app": app}, owner_references=(owner,))
        for app in "xyz"
    ]
    annotated = ObjectMeta(name="n", namespace="plain", annotations={"controller.kubernetes.io/pod-deletion-cost": "x"})
    stamps = [("stamp", "plain", each, section) for each in (*metas, annotated)]
    assert_alike(stamps[0], ("pod", "plain", meta("a"), section.raw.decode()), *stamps[1:], *[stamps[1]] * 3)


def test_what_is_remembered_is_shared() -> None:
    server = SteadyServer(recalls=True)
    first, second = (server.do_pod("plain", meta(name), spec()).object for name in ("a", "b"))
    assert first.sections["spec"] is second.sections["spec"]


def test_only_plain_pods_are_split() -> None:
    assert split_pod(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}') == (b'{"name":"a"}', b"{}")
    assert split_pod(b"[" * 10**5) == (b"", b"")
    assert part_pod({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}) == (
        {"name": "a"},
        b"{}",
    )
    assert part_pod({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}, "status": {}}) == ({}, b"")
    assert part_pod({"apiVersion": "v2", "kind": "Pod", "metadata": {}, "spec": {}}) == ({}, b"")
    assert read_metadata({"name": "a", "labels": {}}) == {"name": "a"}
    assert read_metadata({"name": 5}) is None
    assert read_metadata(b"5") is None
    assert read_metadata(b'{"name":"a","nothing":1}') is None
