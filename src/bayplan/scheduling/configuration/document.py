"""The words of a KubeSchedulerConfiguration, as it is written.

Source of truth: k8s.io/kube-scheduler 0.36 config/v1/types.go, k8s.io/component-base 0.36 config/v1alpha1/types.go.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from bayplan.model.meta import Wire

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class PluginEntry(Wire, frozen=True):
    """A plugin that is switched, and what it weighs where it scores."""

    name: str
    weight: Int32 = 0


class PluginSet(Wire, frozen=True):
    """What is switched on and off at one extension point."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(Wire, frozen=True):
    """The extension points; `multi_point` stands for all that a plugin has."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(Wire, frozen=True):
    """The arguments of a plugin."""

    name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class ProfileDocument(Wire, frozen=True):
    """One profile as it is written."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElection(Wire, frozen=True):
    """Understood, and without effect here."""

    leader_elect: bool = True
    lease_duration: str = ""
    renew_deadline: str = ""
    retry_period: str = ""
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(Wire, frozen=True):
    """Understood, and without effect here."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0
    burst: Int32 = 0


class Document(Wire, frozen=True):
    """The whole file."""

    api_version: str
    kind: str
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileDocument, ...] = ()
    extenders: tuple[Any, ...] = ()
    delay_cache_until_active: bool = False
