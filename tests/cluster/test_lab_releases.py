"""Which Kubernetes a lab is of: chosen, pinned, kept apart, and proved."""

from __future__ import annotations

import re

import pytest

from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.releases import DEFAULT, RELEASES, checksums
from bayplan.cluster.lab.toolchain import VARIABLE, LabUnavailableError, Toolchain

_PINS = re.compile(r"^\t(?:\S+ => )?(\S+ v\S+)$", re.M)


@pytest.mark.parametrize("minor", RELEASES)
def test_every_module_that_is_named_has_its_checksum(minor: str) -> None:
    known = set(checksums().decode().splitlines())
    named = _PINS.findall(RELEASES[minor].go_mod())
    assert f"k8s.io/kubernetes v{RELEASES[minor].kubernetes}" in named
    assert [
        pin for pin in named if not any(line.startswith((f"{pin} h1:", f"{pin}/go.mod h1:")) for line in known)
    ] == []


def test_each_release_has_a_folder_of_its_own() -> None:
    toolchains = [Toolchain(minor) for minor in RELEASES]
    assert len({each.folder for each in toolchains}) == len(RELEASES)
    assert [each.release.rpartition(".")[0] for each in toolchains] == [f"v{minor}" for minor in RELEASES]


@pytest.mark.parametrize(
    ("asked", "variable", "minor"),
    [
        pytest.param(None, "", DEFAULT, id="nobody says, so it is the usual one"),
        pytest.param(None, "1.37", "1.37", id="the environment says"),
        pytest.param("1.35", "1.37", "1.35", id="what is asked for goes before the environment"),
    ],
)
def test_who_chooses(asked: str | None, variable: str, minor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    assert Toolchain(asked).kubernetes == minor
    options = LabOptions() if asked is None else LabOptions(kubernetes=asked)
    assert options.kubernetes == minor


def test_a_minor_that_the_lab_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1.20")
    with pytest.raises(LabUnavailableError, match=r"no lab for Kubernetes 1\.20") as error:
        Toolchain()
    assert error.value.hint == "the lab knows 1.35, 1.36, 1.37"


@pytest.mark.slow
def test_programs_of_another_kubernetes_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Toolchain()
    try:
        here.programs()
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(here.folder))
    other = next(minor for minor in RELEASES if minor != here.kubernetes)
    with pytest.raises(LabUnavailableError, match=f"asked for Kubernetes {other}, but .* is {here.release}"):
        Lab(LabOptions(kubernetes=other), name="another").__enter__()
