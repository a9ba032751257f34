"""Settings: what they are worth, where from, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.service.durations import Duration
from bayplan.service.settings import SETTINGS, Settings, json_schema, plain
from bayplan.service.sources import Given, SettingsError, as_plain, load

NOWHERE = {"XDG_CONFIG_HOME": "/nonexistent"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def faults(**sources: Any) -> list[str]:
    with pytest.raises(SettingsError) as refusal:
        load(**{"env": NOWHERE, **sources})
    return refusal.value.message.splitlines()


def test_without_any_source_the_defaults_hold() -> None:
    resolved = load(env=NOWHERE)
    assert resolved.settings == Settings()
    assert set(resolved.origins.values()) == {"default"}
    assert set(resolved.origins) == set(SETTINGS)


def test_a_flag_beats_a_variable_beats_a_file_beats_the_default(file: Path) -> None:
    file.write_text("log:\n  format: text\nhealth:\n  port: 1\nshutdown:\n  grace: 1h30m\n")
    env = {"BAYPLAN_LOG_FORMAT": "json", "BAYPLAN_HEALTH_PORT": "2"}
    resolved = load(flags=[Given("health.port", "3", "--port")], env=env, file=file)
    assert resolved.settings.health.port == 3
    assert resolved.settings.log.format == "json"
    assert resolved.settings.shutdown.grace == Duration.parse("90m")
    assert resolved.origins == {
        **dict.fromkeys(SETTINGS, "default"),
        "log.format": "BAYPLAN_LOG_FORMAT",
        "health.port": "--port",
        "shutdown.grace": f"{file}:6",
    }


def test_the_default_file_is_found_below_the_configuration_home(tmp_path: Path) -> None:
    path = tmp_path / "bayplan" / "config.yaml"
    path.parent.mkdir()
    path.write_text("health: {port: 7}")
    resolved = load(env={"XDG_CONFIG_HOME": str(tmp_path)})
    assert resolved.settings.health.port == 7
    assert resolved.origins["health.port"] == f"{path}:1"


def test_bayplan_log_sets_the_levels() -> None:
    resolved = load(env={**NOWHERE, "BAYPLAN_LOG": "node.gpu=trace"})
    assert str(resolved.settings.log.levels) == "node.gpu=trace,info"
    assert resolved.origins["log.levels"] == "BAYPLAN_LOG"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "# a comment\n\nlog:\n  levels: info\n\n\n  format: xml\n",
            '7: log.format: expected one of auto, text, json; got "xml"',
            id="a value that is not offered",
        ),
        pytest.param("log:\n  fromat: text", "2: log.fromat: unknown key; did you mean log.format?", id="a typo"),
        pytest.param("lgo: {}", "1: lgo: unknown key; did you mean log?", id="a misspelt section"),
        pytest.param(
            "x: {}",
            "1: x: unknown key; known are log, health, shutdown, throttling, agent, ledger",
            id="nothing of that sort",
        ),
        pytest.param(
            "health:\n  port: 65536",
            '2: health.port: expected a whole number from 0 to 65535; got "65536"',
            id="a number out of bounds",
        ),
        pytest.param(
            "health:\n  bind: ''", '2: health.bind: expected a text that is not empty; got ""', id="an empty text"
        ),
        pytest.param(
            "shutdown:\n  grace: 5",
            '2: shutdown.grace: expected a duration such as "250ms", "5m" or "1h30m"; got "5"',
            id="a duration without a unit",
        ),
        pytest.param(
            "health:\n  port: 1\n  port: 2", "3: health.port: expected once; it stands on line 2 already", id="twice"
        ),
        pytest.param("log: text", '1: log: expected a mapping; got "text"', id="a section that is a value"),
        pytest.param("log:\n  format: [text]", "2: log.format: expected one value; got a list", id="a list"),
        pytest.param("- log", "1: expected a mapping; got a list", id="a file that is a list"),
        pytest.param(
            "log:\n  format: a: b", "2: not YAML: mapping values are not allowed in this context", id="broken YAML"
        ),
        pytest.param("log:\n\tformat: a", "2: not YAML: found character that cannot start any token", id="a tab"),
    ],
)
def test_a_broken_file_names_file_line_and_key(file: Path, text: str, fault: str) -> None:
    file.write_text(text)
    assert faults(file=file) == [f"{file}:{fault}"]


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"log: \xff")
    assert faults(file=file)[0].startswith(f"{file}: not YAML: ")


def test_every_fault_of_every_source_is_told_at_once(file: Path) -> None:
    file.write_text("log:\n  format: xml\nhealth:\n  port: no\n")
    found = faults(file=file, env={"BAYPLAN_HEALTH_PORT": "x"}, flags=[Given("log.levels", "loud", "--set")])
    assert [line.split(": ")[:2] for line in found] == [
        [f"{file}:2", "log.format"],
        [f"{file}:4", "health.port"],
        ["BAYPLAN_HEALTH_PORT", "health.port"],
        ["--set", "log.levels"],
    ]


def test_a_named_file_must_exist_and_the_default_one_need_not(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert faults(file=missing) == [f"{missing}: No such file or directory"]
    assert faults(file=tmp_path) == [f"{tmp_path}: Is a directory"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "log:\n", "---\nlog: {}\n"])
def test_an_empty_file_or_section_sets_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert load(env=NOWHERE, file=file).settings == Settings()


@pytest.mark.parametrize(
    ("env", "fault"),
    [
        pytest.param(
            {"BAYPLAN_LOG_FORMT": "text"},
            "BAYPLAN_LOG_FORMT: unknown variable; did you mean BAYPLAN_LOG_FORMAT?",
            id="a misspelt variable of a known section",
        ),
        pytest.param(
            {"BAYPLAN_LOG": "info", "BAYPLAN_LOG_LEVELS": "info"},
            "BAYPLAN_LOG: log.levels: expected BAYPLAN_LOG or BAYPLAN_LOG_LEVELS, not both",
            id="both names of the levels",
        ),
        pytest.param(
            {"BAYPLAN_LOG_FORMAT": ""},
            'BAYPLAN_LOG_FORMAT: log.format: expected one of auto, text, json; got ""',
            id="an empty variable",
        ),
    ],
)
def test_a_wrong_variable_is_refused(env: dict[str, str], fault: str) -> None:
    assert faults(env={**NOWHERE, **env}) == [fault]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BAYPLAN_SERVICE_HOST", "10.0.0.1"),
        ("BAYPLAN_PORT", "tcp://10.0.0.1:80"),
        ("BAYPLAN_HEALTH_SERVICE_PORT_HTTP", "80"),
        ("BAYPLAN_HEALTH_PORT", "tcp://10.0.0.1:80"),
        ("BAYPLAN_LOG_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("BAYPLAN_SOMETHING_ELSE", "x"),
        ("OTHER_LOG_FORMAT", "x"),
    ],
)
def test_what_kubernetes_puts_into_a_pod_is_no_setting(name: str, value: str) -> None:
    assert load(env={**NOWHERE, name: value}).settings == Settings()


def test_no_section_has_a_name_that_kubernetes_takes() -> None:
    assert {setting.section for setting in SETTINGS.values()}.isdisjoint({"service", "port"})


def test_the_schema_describes_every_setting_and_admits_no_other() -> None:
    schema = json_schema()
    described = {
        f"{section}.{name}": field
        for section, body in schema["properties"].items()
        for name, field in body["properties"].items()
    }
    assert set(described) == set(SETTINGS)
    for key, field in described.items():
        assert field["default"] == plain(SETTINGS[key].default)
        assert field["description"] == SETTINGS[key].description
    assert schema["additionalProperties"] is False
    assert all(body["additionalProperties"] is False for body in schema["properties"].values())
    assert described["health.port"]["maximum"] == 65535
    msgspec.json.encode(schema)


def test_what_is_shown_reads_back_as_the_same(file: Path) -> None:
    given = load(env={**NOWHERE, "BAYPLAN_LOG": "ledger=debug,warning", "BAYPLAN_SHUTDOWN_GRACE": "90s"})
    file.write_bytes(msgspec.json.encode(as_plain(given, origins=False)))
    assert load(env=NOWHERE, file=file).settings == given.settings


@pytest.mark.parametrize("key", SETTINGS)
def test_the_documentation_names_every_setting_with_its_default(key: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    setting = SETTINGS[key]
    row = f"| `{key}` | `{plain(setting.default)}` | `{setting.variable}` | {setting.description} |"
    assert row in page.splitlines()


def test_the_documentation_names_no_setting_that_is_gone() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "`BAYPLAN_" in line]
    assert rows == list(SETTINGS)
