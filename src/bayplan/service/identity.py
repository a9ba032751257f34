"""Which bayplan this is: the same answer from /version, `bayplan version` and the build_info metric."""

from __future__ import annotations

import platform
import sys

import bayplan


def version_info() -> dict[str, str]:
    """Name, version, and what it runs on."""
    return {
        "name": "bayplan",
        "version": bayplan.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": f"{sys.platform}/{platform.machine()}",
    }
