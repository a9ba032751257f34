"""What the API server fills into a pod spec, and the few things it takes out.

Source of truth: kubernetes 1.36 pkg/apis/core/v1 (defaults.go, zz_generated.defaults.go, conversion.go) and
pkg/api/pod/util.go for fields behind gates that are off. Those vanish here already: nothing looks at them in between.
A template gets only what pods made from it must not get anew.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.kinds.volume_claim import default_claim_spec
from bayplan.cluster.embedded.admission.pods.annotations import drop_init_container_annotations
from bayplan.cluster.embedded.admission.pods.containers import default_container
from bayplan.cluster.embedded.admission.pods.images import default_pull_policy
from bayplan.cluster.embedded.admission.pods.pod_resources import default_pod_resources
from bayplan.cluster.embedded.admission.pods.ports import default_host_ports
from bayplan.cluster.embedded.admission.pods.resources import round_resource_list

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_GATED_PROJECTIONS = ("clusterTrustBundle", "podCertificate")  # ClusterTrustBundleProjection, PodCertificateRequest
_VOLUME_DEFAULTS: dict[str, Doc] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_pod(pod: Doc) -> None:
    """Complete a Pod. Its status too has one thing to say twice: `podIP` is the first of `podIPs`."""
    drop_init_container_annotations(pod["metadata"])
    default_pod_spec(pod["spec"], template=False)
    if pod["spec"]["terminationGracePeriodSeconds"] < 0:
        pod["spec"]["terminationGracePeriodSeconds"] = 1
    status = pod.get("status")
    if status and ("podIP" in status or "podIPs" in status):
        _default_addresses(status)


def default_pod_template(template: Doc) -> None:
    """Complete a template that pods are made from."""
    drop_init_container_annotations(template.setdefault("metadata", {}))
    default_pod_spec(template.setdefault("spec", {}), template=True)


def default_pod_spec(spec: Doc, *, template: bool) -> None:
    """Complete a pod spec."""
    for field, value in _SPEC_DEFAULTS:
        spec.setdefault(field, value)
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.pop("schedulingGroup", None)  # gate GenericWorkload
    for volume in spec.get("volumes", ()):
        default_volume(volume)
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            default_container(container, template=template)
            if not template and spec.get("hostNetwork"):
                default_host_ports(container)
    for container in spec.get("ephemeralContainers", ()):
        default_container(container, template=True)
    _default_resources(spec, template=template)
    if not template:
        spec.setdefault("enableServiceLinks", True)


_SPEC_DEFAULTS = (
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("schedulerName", "default-scheduler"),
)


def _default_resources(spec: Doc, *, template: bool) -> None:
    if "overhead" in spec:
        round_resource_list(spec["overhead"])
    if not template:
        default_pod_resources(spec)
    elif resources := spec.get("resources"):
        for field in ("limits", "requests"):
            round_resource_list(resources.get(field, {}))


def default_volume(volume: Doc) -> None:
    """Complete a volume; without a source it is an empty directory."""
    if not any(field != "name" for field in volume):
        volume["emptyDir"] = {}
        return
    for field, source in volume.items():
        for name, value in _VOLUME_DEFAULTS.get(field, _NOTHING).items():
            source.setdefault(name, value)
    if "downwardAPI" in volume:
        _default_downward_api(volume["downwardAPI"])
    if "projected" in volume:
        _default_projections(volume["projected"])
    if claim := volume.get("ephemeral", _NOTHING).get("volumeClaimTemplate"):
        default_claim_spec(claim.setdefault("spec", {}))
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = default_pull_policy(image.get("reference", ""))


_NOTHING: Doc = {}


def _default_downward_api(source: Doc) -> None:
    for item in source.get("items", ()):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
        if "resourceFieldRef" in item:
            item["resourceFieldRef"].setdefault("divisor", "0")


def _default_projections(source: Doc) -> None:
    for projection in source.get("sources") or ():
        for gated in _GATED_PROJECTIONS:
            projection.pop(gated, None)
        if "downwardAPI" in projection:
            _default_downward_api(projection["downwardAPI"])
        if "serviceAccountToken" in projection:
            projection["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_SECONDS)


def _default_addresses(status: Doc) -> None:
    first, every = status.get("podIP"), status.get("podIPs")
    if first and (not every or every[0].get("ip", "") != first):
        status["podIPs"] = every = [{"ip": first}]
    if every and every[0].get("ip"):
        status["podIP"] = every[0]["ip"]
