"""`make test-cgroup2`: boot the machine, show what it prints, end as its pytest ended.

Missing parts are fetched: QEMU is installed with apt-get (needs root); the kernel's package is only unpacked into
~/.cache/bayplan/machine. Without /dev/kvm the machine is emulated, which takes minutes instead of seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .image import write_image

CHECKOUT = Path(__file__).parents[4]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "bayplan/machine"
QEMU, QEMU_PACKAGE, KERNEL_PACKAGE = "qemu-system-x86_64", "qemu-system-x86", "linux-image-cloud-amd64"
TESTS = ("tests/node/cgroup", "-k", "real")
"""Those on the kernel's own groups; the rest needs no machine."""
WITHOUT_CX16 = "max,cx16=off,la57=off"
LONGEST = 1200.0
"""Seconds after which a machine that hangs is switched off."""
HALF = "768M"
"""Memory of each of the two NUMA nodes."""


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def run(*command: str, directory: Path | None = None) -> str:
    """A command's output; the reason why there is none ends the program."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr.strip()}")
    return done.stdout


def find_qemu() -> str:
    """QEMU, installed if need be and allowed."""
    if found := shutil.which(QEMU):
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SystemExit(f"{QEMU} is missing: install it (Debian: apt-get install {QEMU_PACKAGE}), or run this as root")
    say(f"installing {QEMU_PACKAGE} ...")
    run("apt-get", "-q", "update")
    run("apt-get", "-qy", "install", "--no-install-recommends", QEMU_PACKAGE)
    return shutil.which(QEMU) or QEMU


def find_kernel() -> Path:
    """Debian's kernel, fetched once and not installed."""
    if kept := sorted(CACHE.glob("kernel/boot/vmlinuz-*")):
        return kept[-1]
    if shutil.which("apt-get") is None:
        raise SystemExit(f"no kernel in {CACHE}/kernel/boot, and no apt-get to fetch {KERNEL_PACKAGE} with")
    package = re.findall(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", KERNEL_PACKAGE))
    if not package:
        raise SystemExit(
            f"apt-cache knows no {KERNEL_PACKAGE}: run apt-get update, or put a vmlinuz-* into {CACHE}/kernel/boot"
        )
    say(f"fetching {package[0]} ...")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        run("apt-get", "-q", "download", package[0], directory=Path(folder))
        run("dpkg-deb", "-x", *map(str, Path(folder).glob("*.deb")), f"{folder}/kernel")
        shutil.rmtree(f"{folder}/kernel/lib")  # modules: none is needed
        Path(f"{folder}/kernel").rename(CACHE / "kernel")
    return find_kernel()


def has_kvm() -> bool:
    """Whether the processor itself runs machines: a KVM in software (pvm) takes prepared kernels only."""
    flags = re.search(r"^flags\s*:.*\b(vmx|svm)\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return flags is not None and os.access("/dev/kvm", os.R_OK | os.W_OK)


def boot(qemu: str, kernel: Path, image: Path, *, emulate: bool) -> int:
    """Run the machine until it switches off; what its pytest returned."""
    fast = not emulate and has_kvm()
    say(f"booting {kernel.name}, {'with KVM' if fast else 'emulated: this takes a while'}")
    node = [f"memory-backend-ram,size={HALF},id=m{each}" for each in (0, 1)]
    command = [qemu, "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-smp", "4", "-m", "1536M"]
    command += ["-object", node[0], "-numa", "node,nodeid=0,cpus=0-1,memdev=m0"]
    command += ["-object", node[1], "-numa", "node,nodeid=1,cpus=2-3,memdev=m1"]
    # Linux 6.12 was seen to panic under QEMU 7.2's emulation, right after a cmpxchg16b; without these features it boots
    command += ["-accel", "kvm", "-cpu", "max"] if fast else ["-accel", "tcg,thread=multi", "-cpu", WITHOUT_CX16]
    command += ["-kernel", str(kernel), "-initrd", str(image), "-append", "console=ttyS0 quiet panic=-1 psi=1"]
    said = b""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as machine:
        assert machine.stdout is not None
        watch = threading.Timer(LONGEST, machine.kill)
        watch.start()
        while piece := os.read(machine.stdout.fileno(), 4096):
            said += piece
            sys.stdout.buffer.write(piece)
            sys.stdout.flush()
        watch.cancel()
    ended = re.search(rb"^machine ended: (\d+)", said, re.MULTILINE)
    return int(ended[1]) if ended else 70


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", type=int, choices=(1, 2), default=2, help="of the control groups in the machine")
    parser.add_argument("--emulate", action="store_true", help="without KVM, even where there is one")
    parser.add_argument("--kernel", type=Path, help="a vmlinuz to boot instead of Debian's")
    options, arguments = parser.parse_known_args()
    if os.uname().machine != "x86_64":
        raise SystemExit("the machine is an x86-64 one, and takes its Python from here: run this on x86-64")
    qemu, kernel = find_qemu(), options.kernel or find_kernel()
    started = time.monotonic()
    command = [f"{sys.prefix}/bin/python", "-m", "pytest", "-p", "no:bayplan", "-q", *(arguments or TESTS)]
    with tempfile.NamedTemporaryFile(prefix="bayplan-machine-") as image:
        write_image(image.file, CHECKOUT, {"version": options.version, "command": command, "directory": str(CHECKOUT)})
        image.flush()
        say(f"an image of {Path(image.name).stat().st_size >> 20} MiB after {time.monotonic() - started:.1f} s")
        code = boot(qemu, kernel, Path(image.name), emulate=options.emulate)
    say(f"the machine took {time.monotonic() - started:.0f} s")
    return code


raise SystemExit(main())
