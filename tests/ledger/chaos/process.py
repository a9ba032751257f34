"""The ledger as users run it: a process of its own, or several that elect a leader; started, killed, started again."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_BACK_OFF = 1.0
_WEIGHED_EVERY = 0.25
_SETTINGS = {
    "health.port": "0",
    "log.format": "json",
    "log.levels": "httpx2=info,info",  # requests tell what is read anew
    "ledger.election": "off",  # else each start after a kill waits for the old lease to run out
    "ledger.connect_timeout": "2s",
}
_READS_ALL = re.compile(r"GET \S+/api/v1/pods\?(?:\S*sendInitialEvents=true|limit=(?!1\b))\S*")


class Ledger:
    """`bayplan ledger run` against one cluster and one database, watched over as a kubelet does."""

    def __init__(self, folder: Path, database: str, kubeconfig: Path, spool: Path, *, replicas: int = 1) -> None:
        self.settings = {**_SETTINGS, "ledger.election": "on" if replicas > 1 else "off"}
        if database.startswith("sqlite"):  # the time for its turn to write: a locked file is soon an outage
            self.settings["ledger.statement_timeout"] = "1s"
        self.starts = 0
        self.ended = 0
        """How often one ended by itself."""
        self._asked = ("ledger", "run", "--database", database, "--kubeconfig", str(kubeconfig))
        self._folder, self._spool = folder, spool
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * replicas
        self.starved: list[tuple[int, int]] = []
        """At which time how long in all the machine had kept them waiting for a processor, in microseconds."""

    def start(self) -> None:
        """Run those that do not; returns at once."""
        for number, process in enumerate(self._processes):
            if process is None:
                self._processes[number] = self._run(number)
                self.starts += 1

    def _run(self, number: int) -> subprocess.Popen[bytes]:
        settings = {**self.settings, "ledger.spool": str(self._spool / str(number))}
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "bayplan", *words, *self._asked]
        with self._log(number).open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """End all in the middle of whatever they do."""
        for process in self._processes:
            if process is not None:
                self.kill_one(process.pid)

    def kill_one(self, pid: int) -> None:
        """End one."""
        for number, process in enumerate(self._processes):
            if process is not None and process.pid == pid:
                process.send_signal(signal.SIGKILL)
                process.wait()
                self._processes[number] = None

    async def watch_over(self) -> None:
        """Start again whatever ended by itself, and count that."""
        while True:
            await asyncio.sleep(_BACK_OFF)
            for number, process in enumerate(self._processes):
                if process is not None and process.poll() is not None:
                    self.ended += 1
                    self._processes[number] = None
                    self.start()

    async def weigh(self) -> None:
        """Note how the machine's other work keeps them from theirs."""
        known: dict[int, int] = {}
        while True:
            known |= {pid: waited for each in self._processes if each and (waited := _waited(pid := each.pid))}
            self.starved.append((time.time_ns() // 1000, sum(known.values()) // 1000))
            await asyncio.sleep(_WEIGHED_EVERY)

    # --- what they say

    def _log(self, number: int) -> Path:
        return self._folder / f"ledger-{number}.log"

    def log(self) -> str:
        """All that they said."""
        files = [self._log(number) for number in range(len(self._processes))]
        return "".join(each.read_text(errors="replace") for each in files if each.exists())

    def tail(self) -> str:
        """The end of it."""
        return "\n".join(self.log().splitlines()[-15:])

    def reads(self) -> int:
        """How often they asked for all pods."""
        return len(_READS_ALL.findall(self.log()))

    def says(self, what: str) -> int:
        """How often they said something."""
        return self.log().count(what)


def _waited(pid: int) -> int:
    """How long a process's threads were ready to run and did not, in nanoseconds; Linux counts it."""
    total = 0
    for each in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError):  # it ended meanwhile
            total += int(each.read_text().split()[1])
    return total
