"""How the containers of a virtual pod behave: from the pod's annotations, and defaults where they say nothing.

    behaviour.bayplan.dev/<name>               for the pod
    behaviour.bayplan.dev/<name>.<container>   for one container; it wins

What an annotation says is exact. Defaults vary a little from pod to pod, by a hash of the pod's uid, so that replicas
do not move in step and the same pod always moves the same way. docs/behaviour.md is the users' table of all this.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from bayplan.cluster.embedded.kubelet.curves import Curve, read_curve
from bayplan.model.clock import SECOND
from bayplan.model.durations import parse_duration
from bayplan.model.pods import Pod

PREFIX = "behaviour.bayplan.dev/"
PROBES = ("liveness", "readiness", "startup")
_MINUTE = 60 * SECOND
_FIELDS = frozenset(("n", "pod", "namespace", "container", "elapsed"))


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What pods do that say nothing. Spans are in microseconds, the unit of Instant."""

    pull: int = 2 * SECOND
    start: int = SECOND
    shutdown: int = SECOND
    init: int = SECOND
    """How long an init container runs."""
    run: int = _MINUTE
    """How long a container runs that is to end: of a Job, or with an exit code."""
    log_every: int = _MINUTE
    jitter: float = 0.2
    """How much the spans above differ from pod to pod, in both directions."""


USUAL = Defaults()


class Failing(NamedTuple):
    """A probe that fails from one moment of a container's run to another; None is the end of it."""

    probe: str
    after: int
    until: int | None


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How one container behaves. Times count from the start of each run."""

    pull: int
    start: int
    shutdown: int
    run_for: int | None = None
    """None is for ever."""
    exits: tuple[int, ...] = (0,)
    """Exit codes of the first, second, ... run; the last one stays."""
    ready_after: int = 0
    oom_after: int | None = None
    missing_image: bool = False
    failing: tuple[Failing, ...] = ()
    log: str = ""
    log_every: int = _MINUTE
    cpu: Curve | None = None
    memory: Curve | None = None
    gpu: Curve | None = None

    def exit_code(self, attempt: int) -> int:
        """How the run of that number ends, when nobody ends it."""
        return self.exits[min(attempt, len(self.exits) - 1)]


class Problem(NamedTuple):
    """An annotation that cannot be used."""

    annotation: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"annotation {self.annotation}: {self.value!r} is not {self.expected}; the default is used"


def _span(text: str) -> int:
    span = parse_duration(text)
    if span < 0:
        raise ValueError(text)
    return span


def _run_for(text: str) -> int | None:
    return None if text == "forever" else _span(text)


def _codes(text: str) -> tuple[int, ...]:
    codes = tuple(int(each) for each in text.split(","))
    if not all(0 <= code <= 255 for code in codes):
        raise ValueError(text)
    return codes


def _code(text: str) -> tuple[int, ...]:
    codes = _codes(text)
    if len(codes) > 1:
        raise ValueError(text)
    return codes


def _yes(text: str) -> bool:
    return {"": True, "true": True, "false": False}[text]


def _failing(text: str) -> tuple[Failing, ...]:
    return tuple(_one_failing(each.split()) for each in text.split(";"))


def _one_failing(words: list[str]) -> Failing:
    options = dict(word.split("=", 1) for word in words[1:])
    if words[0] not in PROBES or not options.keys() <= {"after", "for"}:
        raise ValueError(words)
    after = _span(options.get("after", "0"))
    return Failing(words[0], after, after + _span(options["for"]) if "for" in options else None)


def _template(text: str) -> str:
    if not set(re.findall(r"\$\{?([A-Za-z_]+)", text)) <= _FIELDS:
        raise ValueError(text)
    return text


class _Reader(NamedTuple):
    field: str
    read: Callable[[str], Any]
    expected: str
    everywhere: bool = False
    """Whether the pod's annotation also holds for init containers and sidecars."""


_DURATION = "a duration, such as 90s or 1h30m"
_CURVE = 'a usage curve, such as 60%, "ramp from=10% to=80% over=30m" or "daily low=10% high=90%"'
READERS: Mapping[str, _Reader] = {
    "pull": _Reader("pull", _span, _DURATION, everywhere=True),
    "start": _Reader("start", _span, _DURATION, everywhere=True),
    "shutdown": _Reader("shutdown", _span, _DURATION, everywhere=True),
    "run-for": _Reader("run_for", _run_for, f"{_DURATION}, or forever"),
    "exit-code": _Reader("exits", _code, "an exit code from 0 to 255"),
    "exits": _Reader("exits", _codes, "exit codes from 0 to 255 with commas between"),
    "ready-after": _Reader("ready_after", _span, _DURATION),
    "oom-after": _Reader("oom_after", _span, _DURATION),
    "missing-image": _Reader("missing_image", _yes, "true or false"),
    "fail-probe": _Reader("failing", _failing, "a probe and when it fails, such as liveness after=10m for=1m"),
    "log": _Reader("log", _template, f"a line with no other fields than {', '.join(sorted('$' + f for f in _FIELDS))}"),
    "log-every": _Reader("log_every", _span, _DURATION),
    "cpu": _Reader("cpu", read_curve, _CURVE),
    "memory": _Reader("memory", read_curve, _CURVE),
    "gpu": _Reader("gpu", read_curve, _CURVE),
}
"""Every annotation there is."""


class Manners(NamedTuple):
    """How all containers of a pod behave, and what could not be read."""

    of: Mapping[str, Behaviour]
    problems: tuple[Problem, ...]


def manners(pod: Pod, defaults: Defaults) -> Manners:
    """How the containers of a pod behave."""
    given, problems = _read(pod)
    own = _defaults_of(pod.metadata.uid, defaults)
    job = pod.metadata.controller
    ends = job is not None and job.kind == "Job"
    wide, everywhere = given.get("", {}), {}
    if wide:
        everywhere = {
            each.field: wide[each.field] for each in READERS.values() if each.everywhere and each.field in wide
        }
    found = {}
    for container in pod.spec.init_containers:
        settings = {**everywhere, **given.get(container.name, {})}
        if not container.is_sidecar:
            settings.setdefault("run_for", own["init"])
        found[container.name] = _behaviour(own, settings)
    for container in pod.spec.containers:
        settings = {**wide, **given.get(container.name, {})}
        if ends or "exits" in settings:
            settings.setdefault("run_for", own["run"])
        found[container.name] = _behaviour(own, settings)
    return Manners(found, problems)


def _behaviour(own: Mapping[str, int], settings: dict[str, Any]) -> Behaviour:
    for field in ("pull", "start", "shutdown", "log_every"):
        settings.setdefault(field, own[field])
    return Behaviour(**settings)


def _read(pod: Pod) -> tuple[dict[str, dict[str, Any]], tuple[Problem, ...]]:
    """The settings by container, '' being the pod, and what cannot be read."""
    given: dict[str, dict[str, Any]] = {}
    problems = []
    for annotation, text in sorted(pod.metadata.annotations.items()):
        if not annotation.startswith(PREFIX):
            continue
        name, _, container = annotation.removeprefix(PREFIX).partition(".")
        reader = READERS.get(name)
        if reader is None:
            problems.append(Problem(annotation, text, f"a known setting, which are {', '.join(sorted(READERS))}"))
        elif container and container not in (names := _names(pod)):
            problems.append(Problem(annotation, text, f"for a container of this pod, which are {', '.join(names)}"))
        else:
            try:
                given.setdefault(container, {})[reader.field] = reader.read(text)
            except (ValueError, KeyError, IndexError):
                problems.append(Problem(annotation, text, reader.expected))
    return given, tuple(problems)


def _names(pod: Pod) -> list[str]:
    return [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]


_VARYING = ("pull", "start", "shutdown", "init", "run")


@functools.lru_cache(maxsize=16_384)
def _defaults_of(uid: str, defaults: Defaults) -> Mapping[str, int]:
    """The defaults as the pod of that uid has them."""
    own = {field: varied(getattr(defaults, field), defaults.jitter, uid, field) for field in _VARYING}
    own["log_every"] = defaults.log_every
    return own


def varied(value: int, jitter: float, *what: str) -> int:
    """A value moved up or down by at most `jitter` of itself; the same for the same `what`."""
    return value + round(value * jitter * (2 * chance(*what) - 1))


def chance(*what: str) -> float:
    """A number from 0 up to 1 that looks like chance and is the same for the same words."""
    return zlib.crc32("\0".join(what).encode()) / 2**32
