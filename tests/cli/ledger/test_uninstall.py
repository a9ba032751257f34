"""`bayplan ledger uninstall` on a served cluster."""

from __future__ import annotations

from bayplan.cluster.kinds import JOB, POD
from bayplan.ledger.finalizers import FINALIZER
from bayplan.testing import pod
from tests.cli.serving import Command, Serving


def test_every_finalizer_of_the_ledger_is_taken_off_and_no_other(command: Command, serving: Serving) -> None:
    for name, finalizers in (("held", [FINALIZER, "example.com/other"]), ("free", ["example.com/other"])):
        manifest = pod(name).document()
        manifest["metadata"]["finalizers"] = finalizers
        serving.do(serving.cluster.create(POD, manifest, "default"))
    template = pod("p").document()
    template["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"name": "held", "finalizers": [FINALIZER]}, "spec": {"template": template}}
    serving.do(serving.cluster.create(JOB, job, "default"))
    told = command("ledger", "uninstall")
    assert (told.code, told.out, told.err) == (0, f"finalizer {FINALIZER} taken off 2 objects\n", "")
    for name in ("held", "free"):
        assert serving.do(serving.cluster.get(POD, name, "default")).meta.finalizers == ("example.com/other",)
    assert serving.do(serving.cluster.get(JOB, "held", "default")).meta.finalizers == ()
    assert command("ledger", "uninstall").out == f"finalizer {FINALIZER} taken off 0 objects\n"
