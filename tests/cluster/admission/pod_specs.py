"""Pod specs for the tests of container rules: good in every field that a test does not set, defaults applied."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.containers import default_container, validate_containers


def container(name: str = "a", **fields: Any) -> Doc:
    """One container as decoding leaves it."""
    return {"name": name, "image": "redis:7", "resources": {}, **fields}


def pod_spec(*containers: Doc, **fields: Any) -> Doc:
    """A pod spec of these containers (one plain one if none is given), as decoding leaves it."""
    listed = list(containers) or [container()]
    return {"containers": listed, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, **fields}


def faults(spec: Doc, *, template: bool = False) -> list[str]:
    """What is wrong with the containers of a spec once they have their defaults: `path: message`, each once, sorted."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for one in spec.get(kind) or ():
            default_container(one, template=template or kind == "ephemeralContainers")
    errors = Errors()
    validate_containers(spec, "spec", errors, template=template, volumes=spec.get("volumes", []))
    return sorted({f"{cause.field}: {cause.message}" for cause in errors})


def container_faults(**fields: Any) -> list[str]:
    """What is wrong with a pod of one container with these fields; paths are relative to the container."""
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "disk", "persistentVolumeClaim": {"claimName": "d"}}]
    found = faults(pod_spec(container(**fields), volumes=volumes, resourceClaims=[{"name": "gpu"}, {"name": "nic"}]))
    return [fault.removeprefix("spec.containers[0].") for fault in found]
