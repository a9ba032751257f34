"""Volumes: one source each, files that stay where they belong, claims that are made for the pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from tests.cluster.admission.pod_specs import container
from tests.cluster.admission.whole_pods import created, faults, template_faults

CLAIM = {"metadata": {}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def volume_faults(**source: Any) -> list[str]:
    """What is wrong with a volume `v` of this source; paths are relative to the volume."""
    found = faults(serviceAccountName="robot", volumes=[{"name": "v", **source}])
    return [fault.removeprefix("volumes[0].") for fault in found]


def item(path: str, key: str = "k", **more: Any) -> Doc:
    return {"key": key, "path": path, **more}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param({}, id="a volume without source is an empty directory"),
        pytest.param({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, id="an empty directory in memory"),
        pytest.param({"hostPath": {"path": "/var/log", "type": "Directory"}}, id="a directory of the host"),
        pytest.param({"configMap": {"name": "c", "items": [item("a/b")]}}, id="keys of a config map"),
        pytest.param({"secret": {"secretName": "s", "defaultMode": 0o400}}, id="a secret with modes"),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, id="a claim"),
        pytest.param({"ephemeral": {"volumeClaimTemplate": CLAIM}}, id="a claim made for the pod"),
        pytest.param({"image": {"reference": "redis:7"}}, id="an image"),
        pytest.param({"csi": {"driver": "Disk.example.com"}}, id="a driver, capitals and all"),
        pytest.param({"nfs": {"server": "s", "path": "/x"}}, id="a network share"),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "s"}}]}},
            id="a token beside a secret",
        ),
        pytest.param(
            {"projected": {"sources": [{"clusterTrustBundle": {"name": "Bad!", "path": ""}}]}},
            id="a trust bundle is dropped before anyone looks at it",
        ),
    ],
)
def test_good_sources(source: Doc) -> None:
    assert volume_faults(**source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            {"hostPath": {"path": "/a"}, "emptyDir": {}},
            ["hostPath: Forbidden: may not specify more than 1 volume type"],
            id="the empty directory counts first",
        ),
        pytest.param(
            {"downwardAPI": {}, "cephfs": {"monitors": ["m"]}, "secret": {"secretName": "s"}},
            [
                "cephFS: Forbidden: may not specify more than 1 volume type",
                "downwarAPI: Forbidden: may not specify more than 1 volume type",
            ],
            id="two sources are refused under upstream's spelling",
        ),
        pytest.param(
            {"emptyDir": {"sizeLimit": "-1"}},
            ["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
            id="no directory is smaller than empty",
        ),
        pytest.param({"hostPath": {}}, ["hostPath.path: Required value"], id="a host path needs a path"),
        pytest.param(
            {"hostPath": {"path": "/a/../b", "type": "Pipe"}},
            [
                "hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                'hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", '
                '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
            ],
            id="a host path does not climb and is of a known type",
        ),
        pytest.param(
            {"configMap": {"defaultMode": 0o1000, "items": [item("/a"), item("..x", ""), item("", mode=-1)]}},
            [
                f"configMap.defaultMode: Invalid value: 512: {MODE}",
                'configMap.items[0].path: Invalid value: "/a": must be a relative path',
                "configMap.items[1].key: Required value",
                "configMap.items[1].path: Invalid value: \"..x\": must not start with '..'",
                f"configMap.items[2].mode: Invalid value: -1: {MODE}",
                "configMap.items[2].path: Required value",
                "configMap.name: Required value",
            ],
            id="keys become relative files with modes",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "a"}, {"path": "b", "fieldRef": {"fieldPath": "status.phase"}}]}},
            [
                'downwardAPI.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: '
                '"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
                "downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
            ],
            id="fields of the pod are reported without their index",
        ),
        pytest.param(
            {"projected": {"sources": [{"secret": {"name": "s", "items": [item("x")]}, "configMap": {"name": "c"}}]}},
            ["projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
            id="a projection has one source",
        ),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", "items": [item("x")]}},
                        {"configMap": {"name": "c", "items": [item("x")]}},
                        {"serviceAccountToken": {"expirationSeconds": 60}},
                    ]
                }
            },
            [
                "projected.path: Required value",
                "projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: "
                "may not specify a duration less than 10 minutes",
                'projected: Invalid value: "c": conflicting duplicate paths',
            ],
            id="two projections do not write one file",
        ),
        pytest.param(
            {"csi": {"driver": "a" * 64, "nodePublishSecretRef": {"name": ""}}},
            [
                "csi.driver: Too long: may not be more than 63 bytes",
                "csi.nodePublishSecretRef.name: Required value",
            ],
            id="a driver has a short name",
        ),
        pytest.param({"image": {}}, ["image.reference: Required value"], id="a pod's image volume names its image"),
        pytest.param(
            {"nfs": {}},
            [
                'nfs.path: Invalid value: "": must be an absolute path',
                "nfs.path: Required value",
                "nfs.server: Required value",
            ],
            id="a share needs a server and an absolute path",
        ),
        pytest.param(
            {"gcePersistentDisk": {"partition": 256}},
            [
                "persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
                "persistentDisk.pdName: Required value",
            ],
            id="a disk is reported under its old name",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {**CLAIM, "metadata": {"name": "x", "labels": {"a": "b"}}}}},
            ["ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"],
            id="a claim template has labels and annotations only",
        ),
    ],
)
def test_bad_sources(source: Doc, expected: list[str]) -> None:
    assert volume_faults(**source) == expected


def test_a_faulty_volume_cannot_be_mounted() -> None:
    mounting = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    found = faults(containers=[mounting], volumes=[{"name": "v", "hostPath": {}}])
    assert found == ['containers[0].volumeMounts[0].name: Not found: "v"', "volumes[0].hostPath.path: Required value"]


def test_names_are_labels_and_unique() -> None:
    assert faults(volumes=[{"name": "v"}, {"name": "v"}]) == ['volumes[1].name: Duplicate value: "v"']
    assert faults(volumes=[{"emptyDir": {}}]) == ["volumes[0].name: Required value"]


def test_a_claim_made_for_the_pod_is_nobody_elses() -> None:
    made = {"name": "data", "ephemeral": {"volumeClaimTemplate": CLAIM}}
    other = {"name": "also", "persistentVolumeClaim": {"claimName": "p-data"}}
    text = "must not reference a PVC that gets created for an ephemeral volume"
    assert faults(volumes=[made, other]) == [
        f'volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-data": {text}'
    ]
    assert template_faults(volumes=[made, other]) == []


def test_the_name_of_a_claim_made_for_the_pod_fits() -> None:
    made = {"name": "data", "ephemeral": {"volumeClaimTemplate": CLAIM}}
    found = faults({"name": "x" * 250}, volumes=[made])
    assert found == [
        f'volumes[0].name: Invalid value: "data": PVC name "{"x" * 250}-data": must be no more than 253 characters'
    ]


def test_a_token_needs_a_service_account() -> None:
    token = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    expected = "must not be specified when serviceAccountName is not set"
    assert faults(volumes=[token]) == [f"volumes[0].projected.sources[0].serviceAccountToken: Forbidden: {expected}"]
    assert template_faults(volumes=[token]) == []


@given(st.sampled_from(["hostPath", "secret", "configMap", "downwardAPI", "projected", "image", "emptyDir"]))
def test_defaults_of_a_volume_are_stable(source: str) -> None:
    once = created(volumes=[{"name": "v", source: {}}])["spec"]
    assert created(volumes=[{"name": "v", source: dict(once["volumes"][0][source])}])["spec"] == once
