"""What a container has written, computed from its run: a first line, a line every so often, a last one.

Nothing is stored: line n of a run is a function of the run's start and of n, so the tail of a log costs only itself.

Source of truth for the refusals: LogLocation in pkg/registry/core/pod/strategy.go, validateContainerLogStatus in
pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Behaviour, Defaults, manners
from bayplan.cluster.embedded.kubelet.run import instant
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.durations import format_duration
from bayplan.model.errors import BadRequest
from bayplan.model.pods import ContainerStatus, Pod

_KEPT = 10_000
"""Lines that are kept of a run; older ones are rotated away."""
_PULL_FAILURES = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class _Stretch(NamedTuple):
    """The run whose log is asked for; `until` and `code` are None while it goes on."""

    attempt: int
    since: Instant
    until: Instant | None
    code: int | None


def logs(
    pod: Object, container: str, previous: bool, tail: int | None, now: Instant, defaults: Defaults = USUAL
) -> str:
    """What a container has written so far, or with `previous` its run before the present one. Raises BadRequest."""
    view = pod.view(Pod)
    name = _choose(view, container)
    if not view.spec.node_name:
        return ""
    stretch = _stretch(view, name, previous=previous)
    lines = _Lines(view, name, manners(view, defaults).of[name], stretch, now)
    wanted = min(lines.count, _KEPT if tail is None else max(tail, 0))
    return "".join(f"{lines[number]}\n" for number in range(lines.count - wanted, lines.count))


def _choose(pod: Pod, container: str) -> str:
    names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    if container:
        if container not in names:
            raise BadRequest(f"container {container} is not valid for pod {pod.metadata.name}")
        return container
    if len(pod.spec.containers) != 1:
        raise BadRequest(
            f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{' '.join(names)}]"
        )
    return pod.spec.containers[0].name


def _stretch(pod: Pod, name: str, *, previous: bool) -> _Stretch:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    status = next((each for each in statuses if each.name == name), None)
    where = f'container "{name}" in pod "{pod.metadata.name}"'
    if status is None:
        raise BadRequest(f"{where} is not available")
    if previous:
        found = _finished(status, last=True)
        if found is None:
            raise BadRequest(f"previous terminated {where} not found")
        return found
    if status.state.running is not None:
        since = instant(status.state.running.started_at) or Instant(0)
        return _Stretch(status.restart_count, since, None, None)
    found = _finished(status, last=False) or _finished(status, last=True)
    if found is not None:
        return found
    if status.state.terminated is not None:
        raise BadRequest(f"{where} is terminated")
    reason = status.state.waiting.reason if status.state.waiting is not None else ""
    raise BadRequest(f"{where} is waiting to start: {_PULL_FAILURES.get(reason, reason)}")


def _finished(status: ContainerStatus, *, last: bool) -> _Stretch | None:
    """The run that is over, or the last one; which is the latest as long as the next one has not begun."""
    terminated = (status.last_state if last else status.state).terminated
    if terminated is None or not terminated.container_id:
        return None
    since = instant(terminated.started_at) or Instant(0)
    attempt = status.restart_count - (last and status.state.waiting is None)
    return _Stretch(max(attempt, 0), since, instant(terminated.finished_at) or since, terminated.exit_code)


class _Lines:
    """The lines of a run, by their number."""

    def __init__(self, pod: Pod, name: str, behaviour: Behaviour, stretch: _Stretch, now: Instant) -> None:
        self._stretch = stretch
        self._every = max(behaviour.log_every, SECOND)
        self._template = Template(behaviour.log or "still running after $elapsed")
        self._words = {"pod": pod.metadata.name, "namespace": pod.metadata.namespace, "container": name}
        end = now if stretch.until is None else stretch.until
        self._steps = max(end - stretch.since, 0) // self._every
        self.count = 1 + self._steps + (stretch.until is not None)

    def __getitem__(self, number: int) -> str:
        since, until = self._stretch.since, self._stretch.until
        if number == 0:
            attempt = f" (restart {self._stretch.attempt})" if self._stretch.attempt else ""
            return f"{rfc3339(since)} {self._words['container']} starting in pod {self._words['pod']}{attempt}"
        if number > self._steps and until is not None:
            return f"{rfc3339(until)} {self._words['container']} ended with exit code {self._stretch.code}"
        elapsed = number * self._every
        text = self._template.safe_substitute(self._words, n=number, elapsed=format_duration(elapsed))
        return f"{rfc3339(Instant(since + elapsed))} {text}"
