"""The same files read here and by a real kube-scheduler, which lists its plugins before it asks for any server."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.cluster.lab.toolchain import Toolchain
from bayplan.scheduling.configuration import ConfigurationError, read_configuration
from bayplan.scheduling.configuration.document import Plugins
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.profiles import KNOWN
from tests.scheduling.test_configuration import HEADER
from tests.scheduling.test_configuration_arguments import REFUSED_ARGUMENTS

pytestmark = pytest.mark.slow

KUBECONFIG = {
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": ""}}],
    "current-context": "none",
}
UPSTREAM = {known.name: known for known in KNOWN}
POINTS = [field.encode_name for field in msgspec.structs.fields(Plugins) if not field.name.startswith("placement")]
LISTED = re.compile(r'starts to work with those plugins" Plugins=(\{.*\})$', re.M)


@pytest.fixture(scope="module")
def kube_scheduler() -> Path:
    """The lab's, if it has been built."""
    found = {each.name: each.path for each in Toolchain().find()}["kube-scheduler"]
    if found is None:
        pytest.skip("no kube-scheduler here")
    return found


def listed(program: Path, folder: Path, profile: dict[str, Any]) -> dict[str, Any] | None:
    """What a real one enables where, None if it refuses. Told to write its configuration, it ends before it begins."""
    (folder / "kubeconfig").write_text(json.dumps(KUBECONFIG))
    document = {**HEADER, "clientConnection": {"kubeconfig": str(folder / "kubeconfig")}, "profiles": [profile]}
    (folder / "scheduler.yaml").write_text(json.dumps(document))
    flags = [f"--config={folder}/scheduler.yaml", f"--write-config-to={folder}/written", "--secure-port=0", "-v=2"]
    told = subprocess.run([program, *flags], capture_output=True, text=True, check=False, timeout=60).stderr
    if not (folder / "written").exists():
        assert "command failed" in told
        return None
    (found,) = LISTED.findall(told)
    plugins: dict[str, Any] = json.loads(found)
    return plugins


@pytest.mark.parametrize(("plugin", "args", "path", "message"), REFUSED_ARGUMENTS)
def test_it_refuses_these_arguments_too(
    kube_scheduler: Path, tmp_path: Path, plugin: str, args: dict[str, Any], path: str, message: str
) -> None:
    assert path
    assert message
    assert listed(kube_scheduler, tmp_path, {"pluginConfig": [{"name": plugin, "args": args}]}) is None


def some_plugins(chance: random.Random) -> dict[str, Any]:
    """Sets of plugins at some points, mostly where they belong; what needs preparation is not torn from it."""
    sets = {}
    for point in chance.sample([point for point in POINTS if not point.startswith("pre") or point == "preEnqueue"], 4):
        names = [name for name, known in UPSTREAM.items() if point in (*known.points, "multiPoint")] or list(UPSTREAM)
        enabled = chance.sample(names, min(len(names), chance.randrange(4)))
        disabled = ["*"] if chance.random() < 0.2 else chance.sample(names, min(len(names), chance.randrange(3)))
        sets[point] = {
            "enabled": [{"name": name, "weight": chance.choice([0, 1, 5, 7])} for name in enabled],
            "disabled": [{"name": name} for name in disabled],
        }
    return sets


def read(profile: dict[str, Any]) -> Profile | None:
    """The profile as it is read here, None if it is refused."""
    try:
        (found,) = read_configuration({**HEADER, "profiles": [profile]}).profiles
    except ConfigurationError:
        return None
    return found


@pytest.mark.parametrize("seed", range(24))
def test_it_enables_the_same_plugins_in_the_same_order(kube_scheduler: Path, tmp_path: Path, seed: int) -> None:
    profile = {"plugins": some_plugins(random.Random(seed))}
    theirs = listed(kube_scheduler, tmp_path, profile)
    ours = read(profile)
    if theirs is None or ours is None:
        assert (theirs is None) == (ours is None)
        return

    def at(point: str) -> list[str]:
        return [entry["Name"] for entry in theirs[point]["Enabled"] or ()]

    prepared_only = [name for name in at("PreFilter") if name not in at("Filter")]
    assert [plugin.name for plugin in ours.filters] == prepared_only + at("Filter")
    weights = [entry["Weight"] for entry in theirs["Score"]["Enabled"] or ()]
    assert [(plugin.name, weight) for plugin, weight in ours.scorers] == list(zip(at("Score"), weights, strict=True))
    assert (ours.preemption is not None) == ("DefaultPreemption" in at("PostFilter"))
    assert ours.claims == ("DynamicResources" in at("PostFilter"))
