"""`bayplan ledger uninstall` takes the Service with all kubelets away, and nobody else's."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import ENDPOINT_SLICE, SERVICE
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.kubelet_service import NAME, NAMESPACE, reconcile
from bayplan.model.errors import NotFound
from tests.cli.serving import Command, Doc, Serving

FREED = f"finalizer {FINALIZER} taken off 0 objects\n"


def _slice(name: str, labels: dict[str, str]) -> Doc:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": []}


def test_what_the_ledger_made_is_removed_and_told(command: Command, serving: Serving) -> None:
    theirs = {"kubernetes.io/service-name": NAME, "endpointslice.kubernetes.io/managed-by": "somebody"}
    ours = {**theirs, "endpointslice.kubernetes.io/managed-by": "bayplan-ledger"}
    serving.do(reconcile(serving.cluster))
    for name, labels in (("theirs", theirs), ("ours", ours)):
        serving.do(serving.cluster.create(ENDPOINT_SLICE, _slice(name, labels), NAMESPACE))
    told = command("ledger", "uninstall")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"{FREED}Service {NAMESPACE}/{NAME} removed\n")
    assert f"EndpointSlice {NAMESPACE}/ours removed\n" in told.out
    assert "theirs" not in told.out
    with pytest.raises(NotFound):
        serving.do(serving.cluster.get(SERVICE, NAME, NAMESPACE))
    left = serving.do(serving.cluster.list(ENDPOINT_SLICE, NAMESPACE)).items
    assert "theirs" in {each.name for each in left}
    assert "ours" not in {each.name for each in left}
    assert command("ledger", "uninstall").out == FREED
    serving.do(serving.cluster.delete(ENDPOINT_SLICE, "theirs", NAMESPACE))


def test_a_service_of_that_name_without_the_mark_stays(command: Command, serving: Serving) -> None:
    service = {
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"ports": [{"port": 1}], "clusterIP": "None"},
    }
    serving.do(serving.cluster.create(SERVICE, service, NAMESPACE))
    assert command("ledger", "uninstall").out == FREED
    assert serving.do(serving.cluster.get(SERVICE, NAME, NAMESPACE)).name == NAME
    serving.do(serving.cluster.delete(SERVICE, NAME, NAMESPACE))
