"""Upstream's recorded answers (tests/vectors/model/FORMAT.md)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

_FOLDER = Path(__file__).parents[1] / "vectors" / "model"


def recorded(name: str) -> list[dict[str, Any]]:
    """The cases of one file."""
    with gzip.open(_FOLDER / f"{name}.jsonl.gz") as lines:
        return [msgspec.json.decode(line) for line in lines]
