"""Processes that never outlive the lab: started, awaited, stopped, restarted, and swept up after a crash.

A small janitor holds the reading end of a pipe whose other end is the parent's. However the parent ends, the pipe
closes; then the janitor kills what is left and removes the folder. So kill -9 of the parent leaves nothing either.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bayplan.model.clock import monotonic
from bayplan.model.errors import TemporaryError

_JANITOR = """
cat >/dev/null
for pid in $(cat "$1/pids" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
rm -rf "$1"
"""


class LabBrokenError(TemporaryError):
    """A process of the lab ended or did not become ready."""

    code = "BP-L002"


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Processes:
    """The processes of one lab, by name, and the folder they live in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        (folder / "pids").touch()
        self._janitor = subprocess.Popen(
            ["/bin/sh", "-c", _JANITOR, "janitor", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a process; its output goes to a file of its name."""
        self._commands[name] = [*command]
        with (self.folder / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's Ctrl-C is the parent's business
                env={"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder)},
            )
        self._running[name] = process
        self._note_pids()

    def _note_pids(self) -> None:
        pids = "\n".join(str(process.pid) for process in self._running.values())
        (self.folder / "pids.new").write_text(pids + "\n")
        (self.folder / "pids.new").rename(self.folder / "pids")

    def pid(self, name: str) -> int:
        """The process id, for a fault to be made."""
        return self._running[name].pid

    def names(self) -> list[str]:
        """The processes that have been started."""
        return [*self._running]

    def await_url(self, name: str, url: str, *, within: float = 60.0) -> bytes:
        """Wait until a process answers 200, and give the answer. Raises LabBrokenError with the end of its log."""
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - readiness on loopback, before any trust
        end = monotonic() + within
        while monotonic() < end:
            if self._running[name].poll() is not None:
                raise LabBrokenError(f"{name} ended with {self._running[name].returncode}:\n{self.tail(name)}")
            try:
                with urllib.request.urlopen(url, timeout=2, context=context) as answer:  # noqa: S310 - our own URL
                    if answer.status == 200:
                        body: bytes = answer.read()
                        return body
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise LabBrokenError(f"{name} was not ready within {within:.0f} s:\n{self.tail(name)}")

    def tail(self, name: str, lines: int = 12) -> str:
        """The end of a process's log."""
        path = self.folder / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def stop(self, name: str, *, kill: bool = False, within: float = 10.0) -> None:
        """End a process: SIGTERM, then SIGKILL; with `kill`, SIGKILL at once."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._note_pids()

    def restart(self, name: str, *, kill: bool = True) -> None:
        """Stop a process and start it again with the same command."""
        command = self._commands[name]
        self.stop(name, kill=kill)
        self.start(name, command)

    def close(self) -> None:
        """End all processes, newest first, and remove the folder."""
        for name in reversed(self.names()):
            self.stop(name, kill=name in ("etcd", "kube-apiserver"))  # they hold nothing that is to be kept
        shutil.rmtree(self.folder, ignore_errors=True)
        assert self._janitor.stdin is not None
        self._janitor.stdin.close()
        self._janitor.wait()
