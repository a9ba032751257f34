"""The life of a pod on its node: containers pulled, started in order, restarted, and stopped in order.

`Life` is one look at one pod: it reads the stored status, does everything that has fallen due by now, and knows when
the next thing will. A start happens when the kubelet does it, so at `now`; an end happens when the container's course
says, so a kubelet that was away reports it with the right time.

Source of truth: computePodActions and SyncPod in pkg/kubelet/kuberuntime, images/image_manager.go for the pulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.cluster.embedded.kubelet.course import SIGTERM, End, ended, failing_pull, stopped
from bayplan.cluster.embedded.kubelet.run import Run, image_size
from bayplan.cluster.embedded.kubelet.summary import failed_for_good
from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.model.durations import format_duration
from bayplan.model.nodes import ContainerImage
from bayplan.model.pods import Pod, Probe


class Event(NamedTuple):
    """Something to tell of the pod."""

    type: str
    reason: str
    message: str
    field: str = ""
    """The container it is about, as a path."""


def _field(run: Run | None) -> str:
    if run is None:
        return ""
    return f"spec.{'initContainers' if run.init else 'containers'}{{{run.name}}}"


class Life:
    """A pod's containers at an instant. `images` are those that lie on the node."""

    def __init__(
        self, pod: Pod, runs: Sequence[Run], began: Instant, now: Instant, images: Sequence[ContainerImage]
    ) -> None:
        self.pod = pod
        self.runs = runs
        self.mains = [run for run in runs if not run.init]
        self.began = began
        self.now = now
        self.events: list[Event] = []
        self.next: Instant | None = None
        self._images = images
        self._told = {run.name for run, begin in self._queue() if begin is not None}

    def normal(self, reason: str, message: str, run: Run | None = None) -> None:
        """Tell of something usual, with the container it is about."""
        self.events.append(Event("Normal", reason, message, _field(run)))

    def warning(self, reason: str, message: str, run: Run | None = None) -> None:
        """Tell of something wrong, with the container it is about."""
        self.events.append(Event("Warning", reason, message, _field(run)))

    def _wake(self, at: int) -> None:
        self.next = Instant(at) if self.next is None else min(self.next, Instant(at))

    def first_look(self) -> None:
        """The kubelet has only just seen the pod: nothing of it has been told yet."""
        self._told = set()

    # --- going on

    def go_on(self) -> None:
        """Do everything that is due."""
        moved = True
        while moved:
            self.next = None
            over = self._over()
            if over is not None:
                self._stop_sidecars(over)
                return
            moved = False
            for run, begin in self._queue():
                moved = self._turn(run, begin) or moved

    def _queue(self) -> list[tuple[Run, Instant | None]]:
        """The containers, each with the instant from which it may be started for the first time."""
        found: list[tuple[Run, Instant | None]] = []
        begin: Instant | None = self.began
        initialized = any(not run.never_ran for run in self.mains)
        for run in self.runs:
            found.append((run, begin))
            if run.init and begin is not None and not initialized:
                begin = self._done(run)
        return found

    def _done(self, run: Run) -> Instant | None:
        """When an init container let the next one go."""
        if not run.sidecar:
            return run.finished_at if run.succeeded else None
        if run.running_since is None:
            return None
        started = run.course().started
        return started if started is not None and started <= self.now else None

    def _turn(self, run: Run, begin: Instant | None) -> bool:
        """Move one container on by one step, if one is due."""
        if run.running_since is not None:
            return self._running(run)
        if run.init and not run.sidecar and (run.succeeded or any(not each.never_ran for each in self.mains)):
            return False
        if run.outcome is not None:
            return self._restart(run)
        if begin is None:
            return False
        return self._start(run, begin)

    def _running(self, run: Run) -> bool:
        course = run.course()
        end = course.end
        if run.image_changed:
            self.normal("Killing", f"Container {run.name} definition changed, will be restarted", run)
            end = ended(self.now, SIGTERM)
        if end is not None and end.at <= self.now:
            run.finish(end)
            if end.probe:
                self._tell_unhealthy(run, end)
            return True
        if run.judge(self.now) is False and run.started:
            self._tell_probe(run, "readiness")
        following = course.next_after(self.now)
        if following is not None:
            self._wake(following)
        return False

    def _restart(self, run: Run) -> bool:
        if not run.restarts_after(self.pod.spec.restart_policy):
            return False
        delay = run.delay()
        at = run.finished_at + delay + run.behaviour.start
        if at <= self.now:
            self._begin(run)
            return True
        self._wake(at)
        if delay and run.waiting != "CrashLoopBackOff":
            who = f"{self.pod.metadata.name}_{self.pod.metadata.namespace}({self.pod.metadata.uid})"
            span = format_duration(delay)
            run.wait("CrashLoopBackOff", f"back-off {span} restarting failed container={run.name} pod={who}")
            self.warning("BackOff", f"Back-off restarting failed container {run.name} in pod {who}", run)
        return False

    # --- starting

    def _lies_here(self, run: Run) -> bool:
        if run.spec.image_pull_policy == "Always":
            return False
        return run.restarts > 0 or any(run.spec.image in each.names for each in self._images)

    def _start(self, run: Run, begin: Instant) -> bool:
        """The first start: the image comes first."""
        if run.behaviour.missing_image:
            return self._fail_pull(run, begin)
        here = self._lies_here(run)
        if not here and run.name not in self._told:
            self._tell_pulling(run)
        at = begin + run.behaviour.start + (0 if here else run.behaviour.pull)
        if at > self.now:
            self._wake(at)
            return False
        self._begin(run)
        return True

    def _tell_pulling(self, run: Run) -> None:
        self._told.add(run.name)
        self.normal("Pulling", f'Pulling image "{run.spec.image}"', run)

    def _begin(self, run: Run) -> None:
        again = run.outcome is not None
        image = run.spec.image
        run.start(self.now, self.pod.metadata.uid)
        if self._lies_here(run):
            present = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self.normal("Pulled", present, run)
        else:
            if again:
                self._tell_pulling(run)
            span = format_duration(0 if again else run.behaviour.pull // MILLISECOND * MILLISECOND)
            size = image_size(image)
            pulled = (
                f'Successfully pulled image "{image}" in {span} ({span} including waiting). Image size: {size} bytes.'
            )
            self.normal("Pulled", pulled, run)
        self.normal("Created", "Container created", run)
        self.normal("Started", "Container started", run)

    def _fail_pull(self, run: Run, begin: Instant) -> bool:
        image = run.spec.image
        if run.name not in self._told:
            self._tell_pulling(run)
        pull = failing_pull(begin, run.behaviour.pull, self.now)
        self._wake(pull.until)
        reason = "ImagePullBackOff" if pull.backing_off else "ErrImagePull"
        if not pull.failures or run.waiting == reason:
            return False
        why = (
            f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
            f'failed to resolve reference "{image}": {image}: not found'
        )
        if pull.backing_off:
            self.normal("BackOff", f'Back-off pulling image "{image}"', run)
            run.wait(reason, f'Back-off pulling image "{image}": ErrImagePull: {why}')
        else:
            if pull.failures > 1:
                self._tell_pulling(run)
            self.warning("Failed", f'Failed to pull image "{image}": {why}', run)
            run.wait(reason, why)
        self.warning("Failed", f"Error: {reason}", run)
        return False

    # --- stopping

    def _over(self) -> Instant | None:
        """When the pod had run its course: its containers, or an init container, ended for good."""
        policy = self.pod.spec.restart_policy
        for run in self.runs:
            if run.init and not run.sidecar and failed_for_good(run, policy):
                return run.finished_at
        if all("terminated" in run.state and not run.restarts_after(policy) for run in self.mains):
            return max(run.finished_at for run in self.mains)
        return None

    def _stop_sidecars(self, at: Instant) -> None:
        if self.stop(at, self.pod.spec.termination_grace_period_seconds):
            return
        for run in self.runs:  # they go on being judged while they are told to stop
            if run.running_since is not None:
                run.judge(self.now)

    def stop(self, at: Instant, grace: int, *, told: bool = False) -> bool:
        """Stop what runs, told to at an instant; whether all of it has ended by now.

        Main containers are told first; sidecars after them, in the reverse of their order, within the same grace.
        """
        ends = self._ends(at, grace)
        last = max((end.at for end in ends.values()), default=at)
        if last > self.now:
            self.next = last
            return False
        for run in self.runs:
            if run.name in ends:
                if not told:
                    self.tell_stopping(run)
                run.finish(ends[run.name])
        return True

    def tell_stopping(self, run: Run) -> None:
        """Tell that a container is being stopped."""
        self.normal("Killing", f"Stopping container {run.name}", run)

    def _ends(self, at: Instant, grace: int) -> dict[str, End]:
        running = [run for run in self.runs if run.running_since is not None]
        ends: dict[str, End] = {}
        for run in running:
            if not run.sidecar:
                hook = _hook(run) * SECOND
                ends[run.name] = _sooner(run, stopped(at + hook, run.behaviour, grace, hook))
        turn = max((end.at for end in ends.values()), default=at)
        for run in reversed(running):
            if run.sidecar:
                end = _sooner(run, stopped(turn, run.behaviour, grace, turn - at))
                ends[run.name] = end
                turn = max(turn, end.at)
        return ends

    # --- probes

    def _tell_unhealthy(self, run: Run, end: End) -> None:
        self._tell_probe(run, end.probe)
        what = "Init container" if run.init else "Container"
        policy = run.spec.restart_policy or self.pod.spec.restart_policy
        after = "" if policy == "Never" or run.init else ", will be restarted"
        self.normal("Killing", f"{what} {run.name} failed {end.probe} probe{after}", run)

    def _tell_probe(self, run: Run, name: str) -> None:
        probes = {
            "liveness": run.spec.liveness_probe,
            "readiness": run.spec.readiness_probe,
            "startup": run.spec.startup_probe,
        }
        probe = probes[name]
        if probe is not None:
            self.warning(
                "Unhealthy", f"{name.capitalize()} probe failed: {_answer(probe, self.pod.status.pod_ip)}", run
            )


def _hook(run: Run) -> int:
    """How many seconds a preStop hook sleeps."""
    hooks = run.spec.lifecycle
    sleep = hooks.pre_stop.sleep if hooks is not None and hooks.pre_stop is not None else None
    return 0 if sleep is None else sleep.seconds


def _sooner(run: Run, end: End) -> End:
    """A container that would have ended by itself by then has done so."""
    own = run.course().end
    return own if own is not None and own.at <= end.at else end


def _answer(probe: Probe, ip: str) -> str:
    """What a failing probe hears."""
    if probe.http_get is not None:
        return "HTTP probe failed with statuscode: 503"
    if probe.tcp_socket is not None:
        return f"dial tcp {ip}:{probe.tcp_socket.port}: connect: connection refused"
    if probe.grpc is not None:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return "command exited with 1"
