"""kube-apiserver's default admission plugins that matter here, in its order.

Left out are those that have nothing to do with the kinds modelled (certificates, ingress classes, webhooks, policies),
ServiceAccount, and NodeDeclaredFeatureValidator (virtual nodes declare no features).
Source of the order: pkg/kubeapiserver/options/plugins.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.kinds.service_allocation import ServiceAllocation
from bayplan.cluster.embedded.admission.plugin import Plugin
from bayplan.cluster.embedded.admission.plugins.limit_ranger import LimitRanger
from bayplan.cluster.embedded.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from bayplan.cluster.embedded.admission.plugins.node_taints import TaintNodesByCondition
from bayplan.cluster.embedded.admission.plugins.pod_resize import PodResizeValidator
from bayplan.cluster.embedded.admission.plugins.pod_security.plugin import PodSecurity
from bayplan.cluster.embedded.admission.plugins.priority import Priority
from bayplan.cluster.embedded.admission.plugins.quota import ResourceQuota
from bayplan.cluster.embedded.admission.plugins.runtime_class import RuntimeClass
from bayplan.cluster.embedded.admission.plugins.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from bayplan.cluster.embedded.admission.plugins.tolerations import DefaultTolerationSeconds
from bayplan.cluster.embedded.admission.plugins.topology_labels import PodTopologyLabels

PLUGINS: tuple[Plugin, ...] = (
    NamespaceLifecycle(),
    LimitRanger(),
    TaintNodesByCondition(),
    PodSecurity(),
    Priority(),
    DefaultTolerationSeconds(),
    DefaultStorageClass(),
    StorageObjectInUseProtection(),
    PersistentVolumeClaimResize(),
    RuntimeClass(),
    PodTopologyLabels(),
    PodResizeValidator(),
    ResourceQuota(),
    ServiceAllocation(),
)
