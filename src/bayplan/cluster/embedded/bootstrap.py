"""What a new cluster holds before anybody asks for anything."""

from __future__ import annotations

from bayplan.cluster.embedded.server import Server
from bayplan.cluster.kinds import NAMESPACE, PRIORITY_CLASS, SERVICE

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def bootstrap(server: Server) -> None:
    """Create the namespaces, priority classes and the Service that every cluster has."""
    for name in SYSTEM_NAMESPACES:
        server.create(NAMESPACE, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        server.create(PRIORITY_CLASS, "", {"metadata": {"name": name}, "value": value})
    spec = {"ports": [{"name": "https", "port": 443, "targetPort": 6443}], "clusterIP": "10.96.0.1"}
    server.create(SERVICE, "default", {"metadata": {"name": "kubernetes"}, "spec": spec})
