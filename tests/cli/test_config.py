"""`bayplan config` and `bayplan version`, as a person sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

import bayplan
from bayplan.cli.main import main
from bayplan.service.settings import Settings, json_schema, plain

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("BAYPLAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    monkeypatch.chdir(tmp_path)


def test_view_prints_a_settings_file(capsys: Capture) -> None:
    assert main(["config", "view"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == plain(Settings())


def test_view_shows_where_each_value_comes_from(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("config.yaml").write_text("# ours\nshutdown:\n  grace: 90s\n")
    monkeypatch.setenv("BAYPLAN_LOG", "node.gpu=trace")
    arguments = "config view --show-origin --config config.yaml --set health.port=0 --log-format json"
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out.startswith(
        "log:\n"
        "  format: json                  # --log-format\n"
        "  levels: node.gpu=trace,info   # BAYPLAN_LOG\n"
        "health:\n"
        "  bind: 127.0.0.1               # default\n"
        "  port: 0                       # --set\n"
        "shutdown:\n"
        "  grace: 1m30s                  # config.yaml:3\n"
    )


def test_view_in_json_has_value_and_origin(capsys: Capture) -> None:
    assert main(["--set", "health.port=7", "config", "view", "-o", "json", "--show-origin"]) == 0
    assert json.loads(capsys.readouterr().out)["health"] == {
        "bind": {"value": "127.0.0.1", "origin": "default"},
        "port": {"value": 7, "origin": "--set"},
    }


@pytest.mark.parametrize("how", ["", "--show-origin", "-o json", "-o json --show-origin"])
@pytest.mark.parametrize("password", ["s3cret", "p@ss:word", "sla/sh", "100%25"])
def test_view_hides_passwords(password: str, how: str, capsys: Capture) -> None:
    url = f"postgresql://ledger:{password}@db.example.com:5432/ledger"
    assert main(["config", "view", *how.split(), "--set", f"ledger.database={url}"]) == 0
    out = capsys.readouterr().out
    assert password not in out
    assert "postgresql://ledger:[redacted]@db.example.com:5432/ledger" in out


def test_schema(capsys: Capture) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_a_broken_file_is_one_line_a_fault(capsys: Capture) -> None:
    Path("config.yaml").write_text("log:\n  format: xml\n  lvels: info\n")
    assert main(["config", "view", "--config", "config.yaml"]) == 1
    assert capsys.readouterr() == (
        "",
        'error: config.yaml:2: log.format: expected one of auto, text, json; got "xml"\n'
        "       config.yaml:3: log.lvels: unknown key; did you mean log.levels?\n"
        "hint: bayplan config schema prints what can be set\n",
    )


def test_version_in_words_and_in_json(capsys: Capture) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"bayplan {bayplan.__version__} (Python 3.")
    assert main(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == bayplan.__version__
