"""The restricted level: on top of baseline, what a well-kept pod says about itself.

Source of truth: k8s.io/pod-security-admission 0.36 policy.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins.pod_security import baseline
from bayplan.cluster.embedded.admission.plugins.pod_security.walk import (
    Annotations,
    Finding,
    context_of,
    named,
    setters,
    where,
)

_PLAIN_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)


def privilege_escalation(_: Annotations, spec: Doc) -> Finding | None:
    """Nobody gains rights."""
    bad = where(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    detail = f"{named('container', bad)} must set securityContext.allowPrivilegeEscalation=false" if bad else ""
    return Finding("allowPrivilegeEscalation != false", detail) if bad else None


def capabilities(_: Annotations, spec: Doc) -> Finding | None:
    """All capabilities dropped, at most one taken back."""
    bad = where(spec, lambda context: "ALL" not in context.get("capabilities", {}).get("drop", ()))
    details = [f'{named("container", bad)} must set securityContext.capabilities.drop=["ALL"]'] if bad else []
    added = baseline.added_capabilities(spec, frozenset({"NET_BIND_SERVICE"}), "")
    details += [added.detail] if added else []
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(_: Annotations, spec: Doc) -> Finding | None:
    """Volumes of the cluster's own sorts."""
    bad = {
        volume["name"]: next((source for source in volume if source != "name"), "unknown")
        for volume in spec.get("volumes", ())
        if not _PLAIN_VOLUMES & volume.keys()
    }
    if not bad:
        return None
    verb = "uses" if len(bad) == 1 else "use"
    kinds = named("restricted volume type", sorted(set(bad.values())))
    return Finding("restricted volume types", f"{named('volume', list(bad))} {verb} {kinds}")


def run_as_non_root(_: Annotations, spec: Doc) -> Finding | None:
    """Every container is bound not to run as root."""
    reason = "runAsNonRoot != true"
    who = setters(spec, lambda context: context.get("runAsNonRoot") is False)
    if who:
        return Finding(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    if context_of(spec).get("runAsNonRoot"):
        return None
    bad = where(spec, lambda context: "runAsNonRoot" not in context)
    detail = f"pod or {named('container', bad)} must set securityContext.runAsNonRoot=true" if bad else ""
    return Finding(reason, detail) if bad else None


def run_as_user(_: Annotations, spec: Doc) -> Finding | None:
    """Nobody asks to be root."""
    who = setters(spec, lambda context: context.get("runAsUser") == 0)
    return Finding("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(annotations: Annotations, spec: Doc) -> Finding | None:
    """Seccomp is switched on, for the pod or for each container."""
    explicit = baseline.seccomp(annotations, spec)
    if explicit is not None or "seccompProfile" in context_of(spec):
        return explicit
    bad = where(spec, lambda context: "seccompProfile" not in context)
    if not bad:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Finding("seccompProfile", f"pod or {named('container', bad)} {must}")
