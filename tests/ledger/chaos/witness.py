"""The witness: a plain client of the API server that notes when it hears of each version of a pod.

The oracle says what happened; the witness says when anybody at all could know. A restarted API server, a machine with
other work: both make it hear late, and nobody can ask more of the ledger than of the witness.
`python -m tests.ledger.chaos.witness KUBECONFIG FILE` is the process.
"""

from __future__ import annotations

import base64
import bisect
import http.client
import json
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bayplan.model.clock import SECOND

_OURS = Path(__file__).parents[3]
_GONE = 410
_NEIGHBOURS = 100
_PILES_UP = 10 * SECOND
"""What a ledger could not read then it reads now."""
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
Span = tuple[int, int]


class Hearing:
    """When a version could be known. Times are microseconds since 1970."""

    def __init__(
        self,
        heard: Mapping[int, int] | None = None,
        oracle: Mapping[int, int] | None = None,
        stalled: Sequence[Span] = (),
        starved: Sequence[tuple[int, int]] = (),
    ) -> None:
        """By revision when the witness and the oracle heard of it; when the campaign held back, saying nothing, what
        was sent to the ledger; and how long, up to a time, the machine had not let the ledger run."""
        self._heard, self._stalled, self._starved = heard or {}, stalled, starved
        both = sorted(self._heard.keys() & (oracle or {}).keys())
        self._revisions = both
        self._apart = [abs(self._heard[each] - oracle[each]) for each in both] if oracle else []

    def happened_by(self, revision: int, oracle: int) -> int:
        """The earlier of the two who saw it: it was not later than that."""
        return min(oracle, self._heard.get(revision, oracle))

    def known_by(self, revision: int, oracle: int) -> int:
        """When the ledger could know: as the later of the two did, or when a stall was over."""
        at = max(oracle, self._heard.get(revision, oracle))
        return max([end for begin, end in self._stalled if begin <= at <= end], default=at)

    def blur(self, revision: int) -> int:
        """By how much the two differ about what happened around then: how well anybody knows the time."""
        at = bisect.bisect_left(self._revisions, revision)
        return max(self._apart[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS], default=0)

    def starved(self, begin: int, end: int) -> int:
        """For how long of that time, and of the moment before, the ledger could not run though it would."""
        if not self._starved:
            return 0
        first = bisect.bisect_right(self._starved, (begin - _PILES_UP, 0)) - 1
        last = bisect.bisect_left(self._starved, (end, 0))
        return self._starved[min(last, len(self._starved) - 1)][1] - self._starved[max(first, 0)][1]


class Witness:
    """The process, from its start to its testimony."""

    def __init__(self, kubeconfig: Path, file: Path) -> None:
        self._file = file
        command = [sys.executable, "-m", "tests.ledger.chaos.witness", str(kubeconfig), str(file)]
        self._process = subprocess.Popen(command, cwd=_OURS, start_new_session=True)

    def heard(self) -> dict[int, int]:
        """When it heard of each revision first."""
        found: dict[int, int] = {}
        for line in self._file.read_text().splitlines() if self._file.exists() else ():
            revision, _, at = line.partition(" ")
            if at:
                found.setdefault(int(revision), int(at))
        return found

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


# --- the process


def _connection(kubeconfig: dict[str, Any]) -> tuple[http.client.HTTPSConnection, dict[str, str]]:
    cluster = kubeconfig["clusters"][0]["cluster"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    address = cluster["server"].removeprefix("https://")
    token = kubeconfig["users"][0]["user"]["token"]
    return http.client.HTTPSConnection(address, context=trusted), {"Authorization": f"Bearer {token}"}


def _watch(kubeconfig: dict[str, Any], since: str) -> Iterator[bytes]:
    """The lines of a watch of all pods, from a revision or from now."""
    connection, headers = _connection(kubeconfig)
    after = f"&resourceVersion={since}" if since else ""
    connection.request("GET", f"/api/v1/pods?watch=true{after}", headers=headers)
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        raise OSError(f"the API server says {answer.status}")
    yield from iter(answer.readline, b"")


def main(kubeconfig: str, file: str) -> None:
    """Watch until killed; what is out of reach is let go."""
    access, since = yaml.safe_load(Path(kubeconfig).read_text()), ""
    with Path(file).open("a", buffering=1) as notes:
        while True:
            try:
                for line in _watch(access, since):
                    found, now = _VERSION.search(line), time.time_ns() // 1000
                    if line.startswith(b'{"type":"ERROR"') or found is None:
                        since = "" if json.loads(line)["object"].get("code") == _GONE else since
                        break
                    since = found[1].decode()
                    notes.write(f"{since} {now}\n")
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:3])
