"""Volumes: a name and exactly one source, each source with its own few rules.

Source of truth: kubernetes 1.36 pkg/apis/core/validation, ValidateVolumes. Sources are looked at in upstream's order:
the first one counts, the others are one too many. Of the storage systems that left the tree only the fields that must
be given are checked, not their grammar (iSCSI names, registries, disk URIs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.volume_claim import validate_claim_spec
from bayplan.cluster.embedded.admission.labels import validate_labels
from bayplan.cluster.embedded.admission.metadata import validate_annotations
from bayplan.cluster.embedded.admission.pods.containers import validate_pull_policy
from bayplan.cluster.embedded.admission.pods.files import (
    validate_config_map,
    validate_downward_api,
    validate_projected,
    validate_secret,
)
from bayplan.cluster.embedded.admission.pods.paths import validate_descending_path, validate_no_backsteps
from bayplan.cluster.embedded.admission.syntax import between, dns1123_label, dns1123_subdomain, size
from bayplan.model.quantity import parse

Source = Callable[[Doc, str, Errors], None]

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def validate_volumes(volumes: Sequence[Doc], pod: str, path: str, errors: Errors, *, template: bool) -> list[Doc]:
    """The volumes without fault: containers may mount only these. `pod` is the pod's name, empty if unknown."""
    good: list[Doc] = []
    names: set[str] = set()
    created = {f"{pod}-{volume.get('name', '')}" for volume in volumes if pod and "ephemeral" in volume}
    for i, volume in enumerate(volumes):
        here = f"{path}[{i}]"
        before = len(errors)
        _validate_source(volume, pod, here, errors, template=template)
        _validate_name(volume.get("name", ""), names, f"{here}.name", errors)
        if len(errors) == before:
            names.add(volume["name"])
            good.append(volume)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim and claim in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.invalid(f"{here}.persistentVolumeClaim.claimName", claim, text)
    return good


def _validate_name(name: str, names: set[str], path: str, errors: Errors) -> None:
    if not name:
        errors.required(path)
    else:
        for fault in dns1123_label(name):
            errors.invalid(path, name, fault)
    if name in names:
        errors.duplicate(path, name)


def _validate_source(volume: Doc, pod: str, path: str, errors: Errors, *, template: bool) -> None:
    if len(volume) == 2 and "name" in volume:  # the usual case
        given = [field for field in volume if field != "name"]
    else:
        given = [field for field in _SOURCES if field in volume]
    if not given:
        errors.required(path, "must specify a volume type")
        return
    first, *others = given
    _SOURCES[first](volume[first], f"{path}.{_CHECKED_AS.get(first, first)}", errors)
    for other in others:
        errors.forbidden(f"{path}.{_REFUSED_AS.get(other, other)}", "may not specify more than 1 volume type")
    if first == "ephemeral":
        _validate_claim_name(volume.get("name", ""), pod, f"{path}.name", errors)
    elif first == "image" and not template and not volume[first].get("reference"):
        errors.required(f"{path}.image.reference")


def _validate_claim_name(volume: str, pod: str, path: str, errors: Errors) -> None:
    if pod and volume:
        claim = f"{pod}-{volume}"
        for fault in dns1123_subdomain(claim):
            errors.invalid(path, volume, f'PVC name "{claim}": {fault}')


def _requiring(*fields: str) -> Source:
    def validate(source: Doc, path: str, errors: Errors) -> None:
        for field in fields:
            if not source.get(field):
                errors.required(f"{path}.{field}")

    return validate


def _validate_empty_dir(source: Doc, path: str, errors: Errors) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and parse(limit).nanos < 0:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _validate_host_path(source: Doc, path: str, errors: Errors) -> None:
    target, sort = source.get("path", ""), source.get("type")
    if not target:
        errors.required(f"{path}.path")
        return
    validate_no_backsteps(target, f"{path}.path", errors)
    if sort is not None and sort not in _HOST_PATH_TYPES:
        errors.not_supported(f"{path}.type", sort, _HOST_PATH_TYPES)


def _validate_git_repo(source: Doc, path: str, errors: Errors) -> None:
    _requiring("repository")(source, path, errors)
    validate_descending_path(source.get("directory", ""), f"{path}.directory", errors)


def _validate_disk(identity: str) -> Source:
    require = _requiring(identity)

    def validate(source: Doc, path: str, errors: Errors) -> None:
        require(source, path, errors)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.invalid(f"{path}.partition", partition, between(1, 255))

    return validate


def _validate_nfs(source: Doc, path: str, errors: Errors) -> None:
    _requiring("server", "path")(source, path, errors)
    target = source.get("path", "")
    if not target.startswith("/"):
        errors.invalid(f"{path}.path", target, "must be an absolute path")


def _validate_csi(source: Doc, path: str, errors: Errors) -> None:
    driver, secret = source.get("driver", ""), source.get("nodePublishSecretRef")
    if not driver:
        errors.required(f"{path}.driver")
    else:
        if size(driver) > 63:
            errors.too_long(f"{path}.driver", 63)
        for fault in dns1123_subdomain(driver.lower()):
            errors.invalid(f"{path}.driver", driver, fault)
    if secret is None:
        return
    name = secret.get("name", "")
    if not name:
        errors.required(f"{path}.nodePublishSecretRef.name")
    else:
        for fault in dns1123_subdomain(name):
            errors.invalid(f"{path}.name", name, fault)


def _validate_ephemeral(source: Doc, path: str, errors: Errors) -> None:
    template = source.get("volumeClaimTemplate")
    path = f"{path}.volumeClaimTemplate"
    if template is None:
        errors.required(path)
        return
    meta = template.get("metadata", {})
    validate_annotations(meta.get("annotations", {}), f"{path}.metadata.annotations", errors)
    validate_labels(meta.get("labels", {}), f"{path}.metadata.labels", errors)
    for field in meta:
        if field not in ("annotations", "labels"):
            errors.forbidden(f"{path}.metadata.{_GO_FIELDS.get(field, field)}", "cannot be set")
    validate_claim_spec(template.get("spec", {}), f"{path}.spec", errors)


def _validate_image(source: Doc, path: str, errors: Errors) -> None:
    validate_pull_policy(source.get("pullPolicy", ""), f"{path}.pullPolicy", errors)


_SOURCES: dict[str, Source] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": _validate_host_path,
    "gitRepo": _validate_git_repo,
    "gcePersistentDisk": _validate_disk("pdName"),
    "awsElasticBlockStore": _validate_disk("volumeID"),
    "secret": validate_secret,
    "nfs": _validate_nfs,
    "iscsi": _requiring("targetPortal", "iqn"),
    "glusterfs": _requiring("endpoints", "path"),
    "flocker": _requiring(),
    "persistentVolumeClaim": _requiring("claimName"),
    "rbd": _requiring("monitors", "image"),
    "cinder": _requiring("volumeID"),
    "cephfs": _requiring("monitors"),
    "quobyte": _requiring("volume"),
    "downwardAPI": validate_downward_api,
    "fc": _requiring(),
    "flexVolume": _requiring("driver"),
    "configMap": validate_config_map,
    "azureFile": _requiring("secretName", "shareName"),
    "vsphereVolume": _requiring("volumePath"),
    "photonPersistentDisk": _requiring("pdID"),
    "portworxVolume": _requiring("volumeID"),
    "azureDisk": _requiring("diskName", "diskURI"),
    "storageos": _requiring("volumeName"),
    "projected": validate_projected,
    "scaleIO": _requiring("gateway", "system", "volumeName"),
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
"""The sources in upstream's order."""

# Upstream reports some sources under another name than they are written.
_CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
_REFUSED_AS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_GO_FIELDS = {"uid": "uID"}
