"""What the API holds, as clients ask for it: group lists, resource lists, and both in one (aggregated discovery)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bayplan.cluster.kinds import Kind

Doc = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUB_VERBS = {"log": ["get"], "binding": ["create"], "eviction": ["create"], "scale": ["get", "patch", "update"]}
_SUB_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
_CATEGORY_ALL = frozenset(
    ("pods", "services", "replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs",
     "cronjobs", "horizontalpodautoscalers")
)  # fmt: skip


def _by_version(kinds: Iterable[Kind]) -> dict[tuple[str, str], list[Kind]]:
    found: dict[tuple[str, str], list[Kind]] = defaultdict(list)
    for kind in kinds:
        found[kind.group, kind.version].append(kind)
    return found


def _sub_verbs(subresource: str) -> list[str]:
    return _SUB_VERBS.get(subresource, ["get", "patch", "update"])


def _sub_kind(kind: Kind, subresource: str) -> tuple[str, str, str]:
    return _SUB_KINDS.get(subresource, (kind.group, kind.version, kind.name))


class Discovery:
    """The documents that say what is served."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._versions = _by_version(kinds)

    def core_versions(self, address: str) -> Doc:
        """/api"""
        clients = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": clients}

    def groups(self) -> Doc:
        """/apis"""
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [*map(self._group, self._group_names())]}

    def _group_names(self) -> list[str]:
        return [*dict.fromkeys(group for group, _ in self._versions if group)]

    def _group(self, name: str) -> Doc:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version}
            for group, version in self._versions
            if group == name
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def group(self, name: str) -> Doc | None:
        """/apis/GROUP"""
        if name not in self._group_names():
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def resources(self, group: str, version: str) -> Doc | None:
        """/api/v1, /apis/GROUP/VERSION"""
        kinds = self._versions.get((group, version))
        if kinds is None:
            return None
        resources = [entry for kind in kinds for entry in _resources(kind)]
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}

    def aggregated(self, *, core: bool) -> Doc:
        """/api and /apis in the form that tells everything at once."""
        groups: dict[str, list[Doc]] = defaultdict(list)
        for (group, version), kinds in self._versions.items():
            if core == (group == ""):
                resources = [*map(_aggregated, kinds)]
                groups[group].append({"version": version, "resources": resources, "freshness": "Current"})
        items = [
            {"metadata": {"name": name} if name else {}, "versions": versions} for name, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _resources(kind: Kind) -> list[Doc]:
    main: Doc = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": _VERBS,
    }
    if kind.short:
        main["shortNames"] = [*kind.short]
    if kind.plural in _CATEGORY_ALL:
        main["categories"] = ["all"]
    entries = [main]
    for subresource in kind.subresources:
        group, version, name = _sub_kind(kind, subresource)
        entry: Doc = {
            "name": f"{kind.plural}/{subresource}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": name,
            "verbs": _sub_verbs(subresource),
        }
        if (group, version) != (kind.group, kind.version):
            entry |= {"group": group, "version": version}
        entries.append(entry)
    return entries


def _aggregated(kind: Kind) -> Doc:
    resource: Doc = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.name.lower(),
        "verbs": _VERBS,
    }
    if kind.short:
        resource["shortNames"] = [*kind.short]
    if kind.plural in _CATEGORY_ALL:
        resource["categories"] = ["all"]
    if kind.subresources:
        resource["subresources"] = [
            {
                "subresource": each,
                "responseKind": dict(zip(("group", "version", "kind"), _sub_kind(kind, each), strict=True)),
                "verbs": _sub_verbs(each),
            }
            for each in kind.subresources
        ]
    return resource
