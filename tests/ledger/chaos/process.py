"""The ledger as users run it: a process of its own, started, killed and started again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

_BACK_OFF = 1.0


_SETTINGS = {
    "health.port": "0",
    "log.format": "json",
    "ledger.election": "off",  # else each start after a kill waits for the old lease to run out
    "ledger.connect_timeout": "2s",
}


class Ledger:
    """`bayplan ledger run` against one cluster and one database, watched over as a kubelet does."""

    def __init__(self, folder: Path, database: str, kubeconfig: Path, spool: Path) -> None:
        self.log = folder / "ledger.log"
        settings = {**_SETTINGS, "ledger.spool": str(spool)}
        if database.startswith("sqlite"):  # the time for its turn to write: a locked file is soon an outage
            settings["ledger.statement_timeout"] = "1s"
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        asked = ("ledger", "run", "--database", database, "--kubeconfig", str(kubeconfig))
        self._command = [sys.executable, "-m", "bayplan", *words, *asked]
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.ended = 0
        """How often it ended by itself."""

    def start(self) -> None:
        """Run it; returns at once."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.starts += 1

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    async def watch_over(self) -> None:
        """Start it again whenever it ended by itself, and count that."""
        while True:
            await asyncio.sleep(_BACK_OFF)
            if self._process is not None and self._process.poll() is not None:
                self.ended += 1
                self.start()

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
