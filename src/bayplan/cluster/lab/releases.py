"""The Kubernetes releases that the lab builds, and the Go module of each.

One module a release holds everything: Kubernetes, etcd and KWOK share most of what they are compiled from. Its go.mod
is derived from the table; from it Go chooses each version by rule, and the checksums of all releases stand together in
`go.sum` (written by `tools/lab_sums.py`).
"""

from __future__ import annotations

import importlib.resources

import msgspec

_COMMANDS = (
    "go.etcd.io/etcd/etcdctl/v3",
    "go.etcd.io/etcd/server/v3",
    *(f"k8s.io/kubernetes/cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
    "k8s.io/kubernetes/cmd/kubectl",
    "sigs.k8s.io/kwok/cmd/kwok",
)
# What Kubernetes keeps in its own tree; released by itself it asks for v0.0.0 of each, which is nowhere.
_STAGING = """
    api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
    component-base component-helpers controller-manager cri-api cri-client cri-streaming csi-translation-lib
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy
    kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission streaming
"""
# KWOK speaks 0.36 of these; Kubernetes 1.35 takes that too, and the last two are no older.
_KWOK_CHOOSES = frozenset({"cri-api", "cri-client", "cri-streaming", "streaming"})


class Release(msgspec.Struct, frozen=True):
    """One patch release of a minor, and what goes with it."""

    kubernetes: str
    etcd: str
    """The one that this Kubernetes was made with."""
    godebug: str
    """The Go release whose behaviour its go.mod asks for."""
    kwok: str = "0.8.0"
    left_to_kwok: frozenset[str] = frozenset()
    """Staging modules whose version is the one that KWOK asks for."""

    def go_mod(self) -> str:
        """The module that builds everything; the indirect requirements follow from it."""
        version = f"v0.{self.kubernetes.removeprefix('1.')}"
        staging = [name for name in _STAGING.split() if name not in self.left_to_kwok]
        blocks = {
            "require": [
                f"go.etcd.io/etcd/etcdctl/v3 v{self.etcd}",
                f"go.etcd.io/etcd/server/v3 v{self.etcd}",
                f"k8s.io/kubernetes v{self.kubernetes}",
                f"sigs.k8s.io/kwok v{self.kwok}",
            ],
            "tool": _COMMANDS,
            "replace": [f"k8s.io/{name} => k8s.io/{name} {version}" for name in staging],
        }
        head = f"module bayplan.dev/lab\n\ngo 1.26.0\n\ngodebug default=go{self.godebug}\n"
        return head + "".join("\n{} (\n\t{}\n)\n".format(word, "\n\t".join(lines)) for word, lines in blocks.items())


RELEASES = {
    "1.35": Release("1.35.8", etcd="3.6.5", godebug="1.25", left_to_kwok=_KWOK_CHOOSES),
    "1.36": Release("1.36.4", etcd="3.6.8", godebug="1.26"),
    "1.37": Release("1.37.1", etcd="3.7.0", godebug="1.26"),
}
"""By minor, oldest first: those that Kubernetes supports."""
DEFAULT = "1.36"


def checksums() -> bytes:
    """The go.sum of all releases."""
    return (importlib.resources.files(__package__) / "go.sum").read_bytes()
