"""The oracle: a process of its own that watches etcd itself, from the first revision, and writes down what it sees.

It knows nothing of the ledger, of its client or of the API server, and is never disturbed. It watches every key, so
revisions must follow each other without a hole: a hole means that the oracle does not know everything, and then the
run says nothing (`OracleGapError`). `python -m tests.ledger.chaos.oracle ETCD FILE` is the process.
"""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.ledger.chaos.objects import GUEST

PODS = "/registry/pods/"
_GUEST = GUEST.encode()
_EVERYTHING = base64.b64encode(b"\0").decode()
_FIRST = 2
"""The revision of etcd's first write; an empty etcd is at 1."""
_OURS = Path(__file__).parents[3]


class OracleGapError(Exception):
    """The oracle missed revisions: the run is void."""


class Seen(msgspec.Struct, frozen=True):
    """One change of one key."""

    revision: int
    at: int
    """Microseconds since 1970, as the oracle heard of it."""
    key: str
    object: dict[str, Any] | None = None
    """A pod whole, anything else as its metadata; None where it was deleted."""


class Version(msgspec.Struct, frozen=True):
    """A state of a pod."""

    revision: int
    at: int
    object: dict[str, Any]
    gone: bool = False
    """It is the state in which the pod was deleted, by this revision."""


class History(msgspec.Struct):
    """All that etcd ever held."""

    pods: dict[str, list[Version]] = {}
    """Every version of every pod, by uid, in order."""
    controllers: dict[str, str] = {}
    """The uid of each object's controller, by the object's uid; empty where there is none."""
    last: int = 0
    """The newest revision."""


def told(changes: Iterator[Seen], up_to: int) -> History:
    """The story of the changes. Raises OracleGapError where a revision is missing, or the last ones are."""
    history = History()
    alive: dict[str, dict[str, Any]] = {}
    for each in changes:
        if history.last == 0 and each.revision != _FIRST:
            raise OracleGapError(f"the story begins at revision {each.revision}, not {_FIRST}")
        if history.last and each.revision not in (history.last, history.last + 1):
            raise OracleGapError(f"nothing is known between the revisions {history.last} and {each.revision}")
        history.last = each.revision
        meta = (each.object or {}).get("metadata", {})
        if meta.get("uid"):
            refs = meta.get("ownerReferences", ())
            history.controllers[meta["uid"]] = next((ref["uid"] for ref in refs if ref.get("controller")), "")
        if each.key.startswith(PODS):
            _tell_pod(history, alive, each)
    if history.last < up_to:
        raise OracleGapError(f"the oracle came to revision {history.last}, the cluster to {up_to}")
    return history


def _tell_pod(history: History, alive: dict[str, dict[str, Any]], each: Seen) -> None:
    gone = each.object is None
    known = alive.pop(each.key) if each.object is None else each.object
    if not gone:
        alive[each.key] = known
    meta = {**known["metadata"], "resourceVersion": str(each.revision)}
    version = Version(each.revision, each.at, {**known, "metadata": meta}, gone)
    history.pods.setdefault(meta["uid"], []).append(version)


class Oracle:
    """The process, from its start to its verdict."""

    def __init__(self, etcd: str, file: Path) -> None:
        self._file = file
        self._looked_at = self._newest = 0
        command = [sys.executable, "-m", "tests.ledger.chaos.oracle", etcd, str(file)]
        self._process = subprocess.Popen(command, cwd=_OURS, start_new_session=True)

    def history(self, up_to: int, within: float = 60.0) -> History:
        """What it saw up to a revision, once it has come there. Raises OracleGapError."""
        end = time.monotonic() + within
        while self.reached() < up_to:
            if self._process.poll() is not None or time.monotonic() > end:
                break
            time.sleep(0.05)
        return told(read(self._file), up_to)

    def reached(self) -> int:
        """The last revision that it has written down."""
        if not self._file.exists():
            return 0
        with self._file.open("rb") as file:
            file.seek(max(0, self._file.stat().st_size - 4_000_000))
            whole = file.read().rpartition(b"\n")[0]
        last = whole.rpartition(b"\n")[2]
        return int(json.loads(last)["revision"]) if last else 0

    def newest(self) -> int:
        """The newest version of a pod with GPUs that it has written down."""
        with self._file.open("rb") as file:
            file.seek(self._looked_at)
            fresh = file.read().rpartition(b"\n")[0]
        self._looked_at += len(fresh) + 1 if fresh else 0
        for line in fresh.splitlines():
            if b'"key":"/registry/pods/' in line and b'"object":{' in line and _GUEST not in line:
                self._newest = int(line[len(b'{"revision":') : line.index(b",")])
        return self._newest

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def read(file: Path) -> Iterator[Seen]:
    """What was written down."""
    decoder = msgspec.json.Decoder(Seen)
    with file.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield decoder.decode(line)


# --- the process


def _watch(etcd: str, since: int) -> Iterator[dict[str, Any]]:
    """The gateway's lines: each is some events that came together."""
    connection = http.client.HTTPConnection(etcd)
    create = {"key": _EVERYTHING, "range_end": _EVERYTHING, "start_revision": str(since)}
    connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
    answer = connection.getresponse()
    for line in iter(answer.readline, b""):
        yield json.loads(line)["result"]


def _note(event: dict[str, Any]) -> Seen:
    entry = event["kv"]
    key = base64.b64decode(entry["key"]).decode()
    revision, now = int(entry["mod_revision"]), time.time_ns() // 1000
    if event.get("type") == "DELETE":
        return Seen(revision, now, key)
    value = base64.b64decode(entry.get("value", ""))
    if not value.startswith(b"{"):
        if key.startswith(PODS):
            raise ValueError(f"{key} is not JSON: the API server needs --storage-media-type=application/json")
        return Seen(revision, now, key, {})
    document = json.loads(value)
    if not key.startswith(PODS):
        document = {
            "metadata": {name: document.get("metadata", {}).get(name) or "" for name in ("uid",)}
            | {"ownerReferences": document.get("metadata", {}).get("ownerReferences") or []}
        }
    return Seen(revision, now, key, document)


def main(etcd: str, file: str) -> None:
    """Watch until killed, or until etcd has forgotten what was not read yet."""
    reached = 0
    with Path(file).open("ab") as notes:
        while True:
            try:
                for result in _watch(etcd, reached + 1):
                    if result.get("canceled"):
                        sys.exit(f"the oracle has a gap: {result}")
                    for event in result.get("events", ()):
                        seen = _note(event)
                        reached = seen.revision
                        notes.write(msgspec.json.encode(seen) + b"\n")
                    notes.flush()
            except (OSError, http.client.HTTPException):  # etcd is being restarted
                time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:3])
