"""Where a setting's value comes from: flag > BAYPLAN_* variable > file > default. Each value remembers its origin.

Every source gives text, and one reader (Setting.read) turns it into a value, so "8081" means the same everywhere. A
wrong value is refused even where a stronger source covers it: a broken file is broken.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from bayplan.model.errors import PermanentError
from bayplan.service.settings import SETTINGS, Settings, build, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Short for BAYPLAN_LOG_LEVELS: the one that is typed by hand.
SHORT = {"BAYPLAN_LOG": "log.levels"}

# What Kubernetes puts into a pod's environment for each Service; a Service named bayplan-health must not break us.
_SERVICE_LINK = re.compile(r"BAYPLAN_\w*?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_SERVICE_LINK_URL = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(PermanentError):
    """A setting cannot be used; the message has one line for each fault: where, which key, what was expected."""

    code = "BP-S001"


class Given(msgspec.Struct, frozen=True):
    """A setting's text and where it stands: `flag --set`, `BAYPLAN_LOG`, `config.yaml:7`."""

    key: str
    text: str
    origin: str


class Resolved(msgspec.Struct, frozen=True):
    """The settings, and the origin of each by key."""

    settings: Settings
    origins: dict[str, str]


class _Fault(msgspec.Struct, frozen=True):
    """One line of a SettingsError."""

    text: str


def default_file(env: Mapping[str, str]) -> Path:
    """$XDG_CONFIG_HOME/bayplan/config.yaml, or the same below ~/.config."""
    home = env.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "bayplan" / "config.yaml"


def load(
    *, flags: Iterable[Given] = (), env: Mapping[str, str] | None = None, file: Path | str | None = None
) -> Resolved:
    """Resolve every setting. A named `file` must exist; the default one may be missing.

    Raises SettingsError with every fault that was found, each on its own line.
    """
    env = os.environ if env is None else env
    faults: list[str] = []
    values: dict[str, Any] = {}
    origins = dict.fromkeys(SETTINGS, "default")
    for given in _all_sources(flags, env, file):
        if isinstance(given, _Fault):
            faults.append(given.text)
            continue
        try:
            values[given.key] = _read(given)
            origins[given.key] = given.origin
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        hint = "bayplan config schema prints what can be set" if any("unknown" in fault for fault in faults) else ""
        raise SettingsError("\n".join(faults), hint=hint)
    return Resolved(build(values), origins)


def _all_sources(flags: Iterable[Given], env: Mapping[str, str], file: Path | str | None) -> Iterator[Given | _Fault]:
    """The weakest source first, so that the last word is the strongest."""
    yield from from_file(default_file(env) if file is None else Path(file), required=file is not None)
    yield from from_environment(env)
    yield from flags


def _read(given: Given) -> Any:
    setting = SETTINGS.get(given.key)
    if setting is None:
        raise ValueError(f"{given.origin}: {given.key}: {_unknown(given.key)}")
    try:
        return setting.read(given.text)
    except ValueError as fault:
        raise ValueError(f"{given.origin}: {given.key}: {fault}") from None


def _unknown(key: str, known: Iterable[str] = SETTINGS) -> str:
    import difflib  # only a mistake needs it

    near = difflib.get_close_matches(key, known, n=1)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; known are {', '.join(known)}"


def _sections() -> list[str]:
    return list(dict.fromkeys(setting.section for setting in SETTINGS.values()))


def from_environment(env: Mapping[str, str]) -> Iterator[Given | _Fault]:
    """The BAYPLAN_* variables that name a setting; a fault for a misspelt one of a known section."""
    variables = {setting.variable: key for key, setting in SETTINGS.items()} | SHORT
    sections = [section.upper() for section in _sections()]
    for short, key in SHORT.items():
        if short in env and SETTINGS[key].variable in env:
            yield _Fault(f"{short}: {key}: expected {short} or {SETTINGS[key].variable}, not both")
    for name, text in sorted(env.items()):
        if _is_service_link(name, text):
            continue
        if name in variables:
            yield Given(variables[name], text, name)
        elif name.startswith("BAYPLAN_") and name.split("_")[1] in sections:
            yield _Fault(f"{name}: {_unknown(name, variables).replace('key', 'variable')}")


def _is_service_link(name: str, text: str) -> bool:
    return _SERVICE_LINK.fullmatch(name) is not None or (
        name.startswith("BAYPLAN_") and name.endswith("_PORT") and _SERVICE_LINK_URL.match(text) is not None
    )


def from_file(path: Path, *, required: bool) -> Iterator[Given | _Fault]:
    """The settings of a YAML file, each with its line."""
    try:
        root = yaml.compose(path.read_bytes(), Loader=yaml.CSafeLoader)
    except FileNotFoundError as missing:
        if required:
            yield _Fault(f"{path}: {missing.strerror}")
        return
    except OSError as unreadable:
        yield _Fault(f"{path}: {unreadable.strerror}")
        return
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        yield _Fault(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {broken.problem}")
        return
    except yaml.YAMLError as broken:
        yield _Fault(f"{path}: not YAML: {str(broken).splitlines()[0]}")
        return
    if root is not None:
        yield from _entries(path, root, prefix="")


def _entries(path: Path, node: yaml.Node, prefix: str) -> Iterator[Given | _Fault]:
    """The leaves of a mapping; `prefix` is "" at the top and "log." in the section log."""
    if not isinstance(node, yaml.MappingNode):
        where = f"{prefix[:-1]}: " if prefix else ""
        if not _is_empty(node):
            yield _Fault(f"{path}:{node.start_mark.line + 1}: {where}expected a mapping; got {_shown(node)}")
        return
    seen: dict[str, int] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        key = f"{prefix}{name.value}"
        if key in seen:
            yield _Fault(f"{path}:{line}: {key}: expected once; it stands on line {seen[key]} already")
        elif any(known.startswith(f"{key}.") for known in SETTINGS):
            yield from _entries(path, value, f"{key}.")
        elif not prefix:
            yield _Fault(f"{path}:{line}: {key}: {_unknown(key, dict.fromkeys(s.section for s in SETTINGS.values()))}")
        elif key in SETTINGS and not isinstance(value, yaml.ScalarNode):
            yield _Fault(f"{path}:{line}: {key}: expected one value; got {_shown(value)}")
        else:
            yield Given(key, str(value.value), f"{path}:{line}")
        seen.setdefault(key, line)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return f'"{node.value}"'
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def as_plain(resolved: Resolved, *, origins: bool) -> dict[str, Any]:
    """Settings by section in JSON's types; with `origins`, each as `{value, origin}`."""
    sections: dict[str, Any] = plain(resolved.settings)
    if origins:
        for key, origin in resolved.origins.items():
            section, name = key.split(".")
            sections[section][name] = {"value": sections[section][name], "origin": origin}
    return sections
