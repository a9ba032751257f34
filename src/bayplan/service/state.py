"""Where a running process leaves what others look for: the kubeconfig of `bayplan up`, the list of running labs."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """$XDG_STATE_HOME/bayplan."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "bayplan"
