"""The first and only process tree of the machine: mount what is needed, run pytest, say how it ended, switch off.

The kernel runs this file as /init with the checkout's own Python; PLAN is beside it.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

POWER_OFF = 0x4321FEDC
V1_HIERARCHIES = ("cpuset", "cpu", "cpuacct", "memory", "freezer")

libc = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, point: str, options: str = "") -> None:
    Path(point).mkdir(parents=True, exist_ok=True)
    if libc.mount(kind.encode(), point.encode(), kind.encode(), 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {point} {options}")


def mount_groups(version: int) -> None:
    if version == 2:
        mount("cgroup2", "/sys/fs/cgroup")
        return
    mount("tmpfs", "/sys/fs/cgroup")
    for each in V1_HIERARCHIES:
        mount("cgroup", f"/sys/fs/cgroup/{each}", each)


def main() -> int:
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev")
    mount("tmpfs", "/tmp")
    mount("tmpfs", "/dev/shm")
    mount("tmpfs", "/run")
    plan = json.loads(Path("/PLAN").read_text())
    mount_groups(plan["version"])
    sys.stdout.write(f"Linux {os.uname().release}, control groups of version {plan['version']}\n")
    sys.stdout.flush()
    environment = {"PATH": "/bin", "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", "TERM": "dumb", "COLUMNS": "120"}
    return subprocess.run(plan["command"], cwd=plan["directory"], env=environment, check=False).returncode


try:
    code = main()
except OSError as error:
    sys.stdout.write(f"{error}\n")
    code = 70
sys.stdout.write(f"\nmachine ended: {code}\n")
sys.stdout.flush()
os.sync()
libc.reboot(POWER_OFF)
