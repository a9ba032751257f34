"""The two clusters that a story runs on: the real control plane of the lab, and the embedded engine served over HTTP.

Both are reached with the same kubectl and nothing else. Only the death of a kubelet is made differently: on the lab
somebody else holds the node's Lease, so KWOK lets go of it; on the embedded engine the Node says that it stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.lab.toolchain import Toolchain
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import MILLISECOND, SystemClock, rfc3339
from tests.stories.story import Doc

COMMON_NODES = ("node-1", "node-2", "node-3")
_CAPACITY = {"cpu": "32", "memory": "64Gi", "pods": "110"}
_QUICK = Defaults(
    pull=50 * MILLISECOND,
    start=50 * MILLISECOND,
    shutdown=50 * MILLISECOND,
    init=50 * MILLISECOND,
    run=100 * MILLISECOND,
    jitter=0.0,
)


class Answer(NamedTuple):
    """What kubectl answered."""

    code: int
    text: str


class Engine:
    """A cluster behind a kubeconfig, and every Event that it has told since."""

    def __init__(self, name: str, kubectl: Path, kubeconfig: Path, folder: Path) -> None:
        self.name = name
        self._command = [str(kubectl), f"--kubeconfig={kubeconfig}", f"--cache-dir={folder}"]
        self.events: list[Doc] = []
        self._watch = subprocess.Popen(
            [*self._command, "get", "events", "-A", "-w", "--output-watch-events", "-o", "json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"events of {name}")
        self._reader.start()

    def _read(self) -> None:
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            told = json.loads(line)
            if told["type"] == "ADDED":
                self.events.append(told["object"])

    def close(self) -> None:
        """Stop listening."""
        self._watch.terminate()
        self._reader.join()
        self._watch.communicate()

    def kubectl(self, *arguments: str, given: str = "") -> Answer:
        """One call of kubectl."""
        done = subprocess.run(
            [*self._command, *arguments], input=given, capture_output=True, text=True, timeout=120, check=False
        )
        return Answer(done.returncode, done.stdout + done.stderr)

    def must(self, *arguments: str, given: str = "") -> str:
        """One call of kubectl that has to succeed."""
        answer = self.kubectl(*arguments, given=given)
        assert answer.code == 0, f"{self.name}: kubectl {' '.join(arguments)}: {answer.text}"
        return answer.text

    def add_node(self, name: str, story: str = "") -> None:
        """Create a node; one that belongs to a story takes that story's pods only."""
        own: dict[str, Any] = {"taints": [{"key": "story", "value": story, "effect": "NoSchedule"}]} if story else {}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"story": story}},
            "spec": own,
            "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY},
        }
        self.must("create", "-f", "-", given=json.dumps(node))

    def fail(self, node: str) -> None:
        """Silence a node's kubelet."""
        now = rfc3339(SystemClock().now())
        self.must("annotate", "node", node, f"bayplan.dev/kubelet=stopped-at={now}")

    def revive(self, node: str) -> None:
        """Let a node's kubelet come back."""
        self.must("annotate", "node", node, "bayplan.dev/kubelet-")


class LabEngine(Engine):
    """The real control plane, with KWOK for kubelets."""

    def fail(self, node: str) -> None:
        self._hold_lease(node, {"holderIdentity": "nobody", "leaseDurationSeconds": 36_000})

    def revive(self, node: str) -> None:
        self._hold_lease(node, {"leaseDurationSeconds": 1})  # it has run out, so KWOK takes it

    def _hold_lease(self, node: str, spec: Mapping[str, Any]) -> None:
        patch = json.dumps({"spec": spec})
        self.must("patch", "lease", node, "-n", "kube-node-lease", "--type=merge", "-p", patch)


@contextlib.contextmanager
def lab() -> Iterator[Engine]:
    """The real control plane."""
    with Lab(name="stories") as running, _opened(LabEngine, running.kubectl, running.kubeconfig) as engine:
        yield engine


@contextlib.contextmanager
def embedded() -> Iterator[Engine]:
    """The embedded engine in real time, on a thread of its own."""
    kubectl = Toolchain().programs()["kubectl"]
    with tempfile.TemporaryDirectory() as folder:
        ready, over = threading.Event(), threading.Event()
        target = Path(folder, "kubeconfig")
        thread = threading.Thread(target=lambda: asyncio.run(_serve(target, ready, over)), name="embedded")
        thread.start()
        try:
            assert ready.wait(30), "the embedded engine did not start"
            with _opened(Engine, kubectl, target) as engine:
                yield engine
        finally:
            over.set()
            thread.join()


async def _serve(target: Path, ready: threading.Event, over: threading.Event) -> None:
    cluster = embedded_cluster(clock=SystemClock(), seed=1, behaviour=_QUICK)
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=target):
        ready.set()
        await asyncio.to_thread(over.wait)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@contextlib.contextmanager
def _opened(kind: type[Engine], kubectl: Path, kubeconfig: Path) -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as cache:
        engine = kind(kind.__name__, kubectl, kubeconfig, Path(cache))
        try:
            for name in COMMON_NODES:
                engine.add_node(name)
            yield engine
        finally:
            engine.close()
