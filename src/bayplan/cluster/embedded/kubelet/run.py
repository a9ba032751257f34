"""One container of a pod and what has become of it: its status read, moved on, and written again.

Only what the kubelet changes is changed; fields of the stored status that it does not know stay.
"""

from __future__ import annotations

import functools
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.cluster.embedded.kubelet.behaviour import Behaviour
from bayplan.cluster.embedded.kubelet.course import Course, End, course, restart_delay
from bayplan.cluster.objects import Section
from bayplan.model.clock import Instant, parse_rfc3339, rfc3339
from bayplan.model.pods import Container, PodSpec

Doc = dict[str, Any]
_REMEMBERED_RUNS = 6  # as many short runs as it takes to reach the longest back-off
_LONG = 1 << 62


@functools.lru_cache(maxsize=16_384)
def instant(text: str | None) -> Instant | None:
    """The time in a status, where there is one."""
    return parse_rfc3339(text) if text else None


class Run:
    """A container: what was asked for, how it behaves, and its latest run."""

    __slots__ = (
        "_course",
        "_doc",
        "behaviour",
        "grace",
        "init",
        "last",
        "ready",
        "restarts",
        "spec",
        "started",
        "state",
        "touched",
    )

    def __init__(
        self, spec: Container, behaviour: Behaviour, doc: Doc | None, *, init: bool, waiting: str, grace: int
    ) -> None:
        self.spec = spec
        self.behaviour = behaviour
        self.init = init
        self.grace = grace
        self.touched = doc is None
        self._doc: Doc = doc or {"image": spec.image, "imageID": ""}
        self._course: Course | None = None
        self.state: Doc = self._doc.get("state") or {"waiting": {"reason": waiting}}
        self.last: Doc = self._doc.get("lastState") or {}
        self.ready: bool = self._doc.get("ready", False)
        self.started: bool = self._doc.get("started", False)
        self.restarts: int = self._doc.get("restartCount", 0)

    # --- what is

    @property
    def name(self) -> str:
        """The container's name."""
        return self.spec.name

    @property
    def sidecar(self) -> bool:
        """Whether it is an init container that stays."""
        return self.init and self.spec.is_sidecar

    @property
    def running_since(self) -> Instant | None:
        """When the present run began, if there is one."""
        running = self.state.get("running")
        return None if running is None else instant(running.get("startedAt")) or Instant(0)

    @property
    def waiting(self) -> str | None:
        """Why it waits, if it does."""
        waiting = self.state.get("waiting")
        return None if waiting is None else waiting.get("reason", "")

    @property
    def outcome(self) -> Doc | None:
        """How its latest finished run ended, unless a newer one is on."""
        if "running" in self.state:
            return None
        found: Doc | None = self.state.get("terminated") or self.last.get("terminated")
        return found

    @property
    def never_ran(self) -> bool:
        """Whether no run of it has begun yet."""
        return "running" not in self.state and self.outcome is None

    @property
    def succeeded(self) -> bool:
        """Whether it is over and ended well."""
        terminated = self.state.get("terminated")
        return terminated is not None and not terminated.get("exitCode", 0)

    @property
    def finished_at(self) -> Instant:
        """When the latest finished run ended."""
        return instant((self.outcome or {}).get("finishedAt")) or Instant(0)

    @property
    def image_changed(self) -> bool:
        """Whether another image is asked for than the one that runs."""
        return bool(self._doc["image"] != self.spec.image)

    def course(self) -> Course:
        """The course of the present run."""
        if self._course is None:
            since = self.running_since
            assert since is not None  # only asked of what runs
            self._course = course(self.spec, self.behaviour, since, self.restarts, self.grace)
        return self._course

    def restarts_after(self, policy: str) -> bool:
        """Whether the kubelet starts it again after its latest outcome. `policy` is the pod's."""
        code = (self.outcome or {}).get("exitCode", 0)
        own = self.spec.restart_policy
        if own is not None:
            if _rule_matches(self.spec, code):
                return True
            policy = own
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    def delay(self) -> int:
        """How long the kubelet waits before it starts the container again."""
        if not self.restarts:
            return 0
        earlier = range(max(1, self.restarts - _REMEMBERED_RUNS), self.restarts)
        ends = [course(self.spec, self.behaviour, Instant(0), attempt, self.grace).end for attempt in earlier]
        began = instant((self.outcome or {}).get("startedAt")) or Instant(0)
        return restart_delay([*(_LONG if end is None else end.at for end in ends), self.finished_at - began])

    # --- what happens

    def start(self, now: Instant, uid: str) -> None:
        """Begin a run."""
        outcome = self.outcome
        if outcome is not None:
            self.last = {"terminated": outcome}
            self.restarts += 1
        self.state = {"running": {"startedAt": rfc3339(now)}}
        self._doc |= {
            "image": self.spec.image,
            "imageID": image_id(self.spec.image),
            "containerID": container_id(uid, self.name, self.restarts),
        }
        self._course = None
        self.touched = True

    def finish(self, end: End) -> None:
        """End the present run."""
        since = self.state["running"].get("startedAt")
        self.state = {
            "terminated": {
                "exitCode": end.code,
                "reason": end.reason,
                "startedAt": since,
                "finishedAt": rfc3339(end.at),
                "containerID": self._doc.get("containerID", ""),
            }
        }
        self._show(started=False, ready=self.init and not self.sidecar and not end.code)
        self.touched = True

    def lose(self) -> None:
        """The pod is over and nobody knows of a run of this container."""
        message = "The container could not be located when the pod was terminated"
        unknown = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": message}
        self.state = {"terminated": self.last.get("terminated") or {**unknown, "startedAt": None, "finishedAt": None}}
        self.last = {}
        self._show(started=False, ready=False)
        self.touched = True

    def wait(self, reason: str, message: str) -> None:
        """Have it wait for its next run."""
        if "terminated" in self.state:
            self.last = self.state
        self.state = {"waiting": {"reason": reason, "message": message}}
        self._show(started=False, ready=False)
        self.touched = True

    def judge(self, now: Instant) -> bool | None:
        """Bring `started` and `ready` up to date; the new readiness where that changed."""
        run = self.course()
        before = self.ready
        started = run.started is not None and run.started <= now
        self._show(started=started, ready=run.ready(now) and (not self.init or self.sidecar))
        return None if self.ready == before else self.ready

    def _show(self, *, started: bool, ready: bool) -> None:
        self.touched = self.touched or self.started != started or self.ready != ready
        self.started, self.ready = started, ready

    # --- what is written

    def document(self, mounts: list[Doc] | None) -> Doc:
        """The status as the API has it."""
        doc: Doc = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": self._doc["image"],
            "imageID": self._doc.get("imageID", ""),
        }
        if "containerID" in self._doc:
            doc["containerID"] = self._doc["containerID"]
        doc["started"] = self.started
        if "containerID" in self._doc:
            resources = msgspec.to_builtins(self.spec.resources)
            if self.spec.resources.requests:
                doc["allocatedResources"] = resources["requests"]
            doc["resources"] = resources
        if mounts:
            doc["volumeMounts"] = mounts
        return doc | {key: value for key, value in self._doc.items() if key not in doc and key not in _MINE}


_MINE = frozenset(("allocatedResources", "resources", "volumeMounts"))


def _rule_matches(spec: Container, code: int) -> bool:
    """Whether the first restart rule that speaks of this exit code wants a restart."""
    for rule in spec.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and (code in codes.values) is (codes.operator == "In"):
            return rule.action in ("Restart", "RestartAllContainers")
    return False


@functools.lru_cache(maxsize=4096)
def image_id(image: str) -> str:
    """The digest under which a runtime knows an image."""
    repository = image.partition("@")[0]
    head, slash, tail = repository.rpartition("/")
    digest = hashlib.sha256(image.encode()).hexdigest()
    return f"{head}{slash}{tail.partition(':')[0]}@sha256:{digest}"


def image_size(image: str) -> int:
    """How large an image is: believable, and always the same."""
    return 20_000_000 + zlib.crc32(image.encode()) % 500_000_000


def container_id(uid: str, name: str, attempt: int) -> str:
    """The id of one run of a container."""
    return f"containerd://{hashlib.sha256(f'{uid}/{name}/{attempt}'.encode()).hexdigest()}"


class _Mount(msgspec.Struct, rename="camel"):
    name: str
    mount_path: str
    read_only: bool = False


class _Mounted(msgspec.Struct, rename="camel"):
    name: str
    volume_mounts: tuple[_Mount, ...] = ()


class _MountedSpec(msgspec.Struct, rename="camel"):
    containers: tuple[_Mounted, ...] = ()
    init_containers: tuple[_Mounted, ...] = ()


_READ_MOUNTS = msgspec.json.Decoder(_MountedSpec).decode


@functools.lru_cache(maxsize=4096)
def mounts_of(spec: Section) -> dict[str, list[Doc]]:
    """What a pod's containers mount, as their statuses tell it. Pods of one template share the answer."""
    found = _READ_MOUNTS(spec.raw)
    return {
        each.name: [_mount(one) for one in each.volume_mounts]
        for each in (*found.init_containers, *found.containers)
        if each.volume_mounts
    }


def _mount(mount: _Mount) -> Doc:
    status: Doc = {"name": mount.name, "mountPath": mount.mount_path}
    return status | {"readOnly": True, "recursiveReadOnly": "Disabled"} if mount.read_only else status


def runs_of(spec: PodSpec, behaviours: Mapping[str, Behaviour], status: Doc) -> list[Run]:
    """The containers of a pod: init containers and sidecars first, each in the order of the spec."""
    waiting = "PodInitializing" if spec.init_containers else "ContainerCreating"
    grace = spec.termination_grace_period_seconds
    runs = []
    for key, containers, init in (
        ("initContainerStatuses", spec.init_containers, True),
        ("containerStatuses", spec.containers, False),
    ):
        known = {each["name"]: each for each in status.get(key) or ()}
        for each in containers:
            doc = known.get(each.name)
            runs.append(Run(each, behaviours[each.name], doc, init=init, waiting=waiting, grace=grace))
    return runs
