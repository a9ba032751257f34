"""The few documents that the contract is told with. Pods ask for a scheduler that nobody is, so that none is placed."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


def config_map(name: str, labels: dict[str, str] | None = None, /, **data: str) -> Doc:
    return {"metadata": {"name": name, **({"labels": labels} if labels else {})}, "data": data}


def pod(name: str, labels: dict[str, str] | None = None, /, **spec: Any) -> Doc:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    spec = {"schedulerName": "nobody", "containers": containers, **spec}
    return {"metadata": {"name": name, **({"labels": labels} if labels else {})}, "spec": spec}


def deployment(name: str, replicas: int) -> Doc:
    """A paused Deployment: a controller that watches makes nothing of it."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    spec = {"paused": True, "replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def budget(name: str, labels: dict[str, str], **spec: Any) -> Doc:
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, **spec}}
