"""The assembled cluster has everything that belongs to one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from bayplan.cluster.embedded import controllers, kubelet
from bayplan.cluster.embedded.assembly import embedded_cluster, standard_controllers
from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.model.pods import Pod


def test_every_controller_there_is_is_part_of_it() -> None:
    found = set()
    for package in (controllers, kubelet):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for one in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(one) and one is not Controller and hasattr(one, "reconcile"):
                    found.add(one)
    assert found <= {type(one) for one in standard_controllers()}


def test_no_two_controllers_have_one_name() -> None:
    names = [one.name for one in standard_controllers()]
    assert len(names) == len(set(names))


async def test_a_job_runs_to_its_end() -> None:
    cluster = embedded_cluster(seed=1)
    await cluster.create(NODE, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "10"}}})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    await cluster.create(JOB, {"metadata": {"name": "j"}, "spec": {"template": template}}, "default")
    await cluster.advance(300)
    (pod,) = (await cluster.list(POD, "default")).items
    assert pod.view(Pod).status.phase == "Succeeded"
    job = await cluster.get(JOB, "j", "default")
    assert job.sections["status"].plain()["succeeded"] == 1
