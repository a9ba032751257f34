"""`bayplan ledger uninstall` on a served cluster."""

from __future__ import annotations

from bayplan.cluster.kinds import POD
from bayplan.ledger.finalizers import FINALIZER
from bayplan.testing import pod
from tests.cli.serving import Command, Serving


def test_every_finalizer_of_the_ledger_is_taken_off_and_no_other(command: Command, serving: Serving) -> None:
    for name, finalizers in (("held", [FINALIZER, "example.com/other"]), ("free", ["example.com/other"])):
        manifest = pod(name).document()
        manifest["metadata"]["finalizers"] = finalizers
        serving.do(serving.cluster.create(POD, manifest, "default"))
    told = command("ledger", "uninstall")
    assert (told.code, told.out, told.err) == (0, f"finalizer {FINALIZER} taken off 1 pod\n", "")
    for name in ("held", "free"):
        assert serving.do(serving.cluster.get(POD, name, "default")).meta.finalizers == ("example.com/other",)
    assert command("ledger", "uninstall").out == f"finalizer {FINALIZER} taken off 0 pods\n"
