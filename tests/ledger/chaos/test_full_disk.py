"""The spool on a disk that fills while it is being written anew. The kernel itself writes short: RLIMIT_FSIZE."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bayplan.ledger.rows import PodSnapshot, Rows
from bayplan.ledger.spool import Spool, SpoolFullError, SpoolUnwritableError
from bayplan.model.clock import Instant

_BATCHES = 12
_LARGEST = 200_000


def _batch(number: int) -> Rows:
    """Ten pods' only versions: none of them may be let go."""
    rows = Rows()
    for version in range(10 * number + 1, 10 * number + 11):
        snapshot = PodSnapshot(
            cluster="c",
            pod_uid=f"pod-{version}",
            resource_version=version,
            namespace="n",
            name="p",
            observed_at=Instant(version),
            spec_hash=b"",
            state=os.urandom(1500),
        )
        rows.add(snapshot)
    return rows


@contextmanager
def _files_end_at(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: a write that would is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _full(path: Path) -> Spool:
    """A spool that the next batch makes write itself anew."""
    spool = Spool(path, most_bytes=_LARGEST)
    for number in range(_BATCHES):
        spool.append(_batch(number))
    assert spool.size + spool.size // _BATCHES > _LARGEST
    return spool


def test_a_disk_that_fills_during_the_rewrite_loses_no_batch(tmp_path: Path) -> None:
    spool = _full(tmp_path / "spool")
    with _files_end_at(spool.size - 6_000), suppress(SpoolFullError, SpoolUnwritableError):
        spool.append(_batch(_BATCHES))
    found = 0
    while spool and (first := spool.first()) is not None:
        found += 1
        spool.drop(first[1])
    assert found >= _BATCHES
    spool.close()


def test_a_rewrite_that_fails_gives_its_room_back(tmp_path: Path) -> None:
    spool = _full(tmp_path / "spool")
    with _files_end_at(spool.size // 2), pytest.raises(SpoolUnwritableError):
        spool.append(_batch(_BATCHES))
    held = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert not [name for name in held if str(tmp_path) in name and name.endswith("(deleted)")]
    spool.close()
