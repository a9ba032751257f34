"""A process to be throttled: threads that burn CPU time together, pause, and do it again.

    python throttling_load.py THREADS WORK PAUSE     work of each thread and pause between, in seconds

Hashing gives up the interpreter's lock, so the threads run at the same time.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time


def burn(seconds: float) -> None:
    """Use CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000)


def main(threads: int, work: float, pause: float) -> None:
    """Run until killed."""
    together = threading.Barrier(threads)

    def one() -> None:
        while True:
            burn(work)
            together.wait()
            time.sleep(pause)
            together.wait()

    for _ in range(threads):
        threading.Thread(target=one, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
