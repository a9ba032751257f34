"""A served cluster for the verbs, and the way to call them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.serving import Command, Serving
from tests.cluster.lab_fixture import lab

__all__ = ["lab"]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A small cluster behind the Kubernetes API, shared by a module's tests."""
    with Serving(tmp_path_factory.mktemp("serving") / "kubeconfig") as running:
        yield running


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No kubeconfig, no settings and no state but what a test puts into this folder."""
    for name in [name for name in os.environ if name.startswith(("BAYPLAN_", "_BAYPLAN", "KUBECONFIG", "KUBERNETES_"))]:
        monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return tmp_path


@pytest.fixture
def command(
    serving: Serving, away: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Calls a verb on the served cluster and tells exit code, output and talk."""
    monkeypatch.setenv("KUBECONFIG", str(serving.kubeconfig))
    return Command(capfd)
