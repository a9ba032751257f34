"""Files of one volume that would lie on top of each other: the same path twice, or one path below another.

Source of truth: kubernetes 1.36 pkg/api/pod/warnings.go, warningsForOverlappingVirtualPaths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, quoted

_SORTS = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
)
_PROJECTIONS = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "name"),
    ("downwardAPI", "DownwardAPI", ""),
)


def overlap_warnings(volumes: Sequence[Doc]) -> Iterator[str]:
    """Warnings on every volume that is made of files."""
    for volume in volumes:
        for field, title, key in _SORTS:
            source = volume.get(field)
            if source and len(source.get("items", ())) > 1:
                title = f"{title} {quoted(source.get(key, ''))}" if key else title
                paths = [(item.get("path", ""), "") for item in source["items"]]
                yield from _overlaps(paths, f"volume {quoted(volume['name'])} ({title})")
        if projected := volume.get("projected"):
            yield from _projected_warnings(
                projected.get("sources") or (), f"volume {quoted(volume['name'])} (Projected)"
            )


def _projected_warnings(sources: Sequence[Doc], title: str) -> Iterator[str]:
    paths: list[tuple[str, str]] = []
    for source in sources:
        if not source:
            yield f"{title} has no sources provided"
        paths += _projected_paths(source)
    yield from _overlaps(paths, title)


def _projected_paths(source: Doc) -> list[tuple[str, str]]:
    for field, title, key in _PROJECTIONS:
        if source.get(field, {}).get("items"):
            title = f"{title} {quoted(source[field].get(key, ''))}" if key else title
            return [(item.get("path", ""), title) for item in source[field]["items"]]
    token = source.get("serviceAccountToken")
    return [(token.get("path", ""), "ServiceAccountToken")] if token is not None else []


def _overlaps(paths: Sequence[tuple[str, str]], title: str) -> Iterator[str]:
    stripped = [(path.rstrip("/"), source) for path, source in paths]
    for i, (path, source) in enumerate(stripped):
        for other, its_source in stripped[:i]:
            if path and other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{title}: overlapping paths: {_shown(path, source)} with {_shown(other, its_source)}"


def _shown(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)
