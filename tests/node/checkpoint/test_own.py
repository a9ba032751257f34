"""What is saved is what is loaded; a bad file is refused and stays."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.node.admission import Remembered
from bayplan.node.checkpoint.errors import CheckpointError, CheckpointWriteError, CorruptCheckpointError
from bayplan.node.checkpoint.own import Checkpoint, decode, encode, to_go_on_with
from bayplan.node.checkpoint.store import CheckpointStore, kubelet_cpu_state, kubelet_memory_state
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import StateError
from bayplan.node.policies import NodePolicies
from tests.node.checkpoint.states import CHECKPOINT, CPUS, MEMORY, file

CPU_SETS = st.integers(0, 2**300)


def test_the_file(snapshot: SnapshotAssertion) -> None:
    assert encode(CHECKPOINT).decode() == snapshot


def test_what_is_written_is_read() -> None:
    assert decode(encode(CHECKPOINT), "") == CHECKPOINT
    assert decode(encode(Checkpoint()), "") == Checkpoint()


@given(CPU_SETS, st.dictionaries(st.text(), st.dictionaries(st.text(), CPU_SETS)))
def test_any_state_of_cpus_survives(shared: int, assignments: dict[str, dict[str, int]]) -> None:
    checkpoint = Checkpoint("static", state=Remembered(CpuState(shared, assignments)))
    assert decode(encode(checkpoint), "") == checkpoint


@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    blob = encode(CHECKPOINT).rstrip()
    place = data.draw(st.integers(0, len(blob) - 1))
    other = data.draw(st.integers(33, 126).filter(lambda byte: byte != blob[place]))
    with pytest.raises((CheckpointError, CorruptCheckpointError)):
        decode(blob[:place] + bytes([other]) + blob[place + 1 :], "state")


def test_a_later_version_is_not_guessed_at() -> None:
    later = encode(CHECKPOINT).replace(b'"version":1', b'"version":2')
    with pytest.raises(CheckpointError, match="version 1, not bayplan node state, version 2"):
        decode(later, "state")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b'"free"', b'"left"', id="a column that is not known"),
        pytest.param(b'"0-3,', b'"3-0,', id="a list that runs backwards"),
        pytest.param(b'"cells":"0-1"', b'"cells":' + b"[" * 100_000, id="brackets without end"),
    ],
)
def test_a_file_that_someone_edited_and_sealed(before: bytes, after: bytes) -> None:
    content = bytes(msgspec.json.decode(encode(CHECKPOINT), type=dict[str, msgspec.Raw])["state"])
    edited = content.replace(before, after)
    assert edited != content
    old, new = (hashlib.sha256(each).hexdigest().encode() for each in (content, edited))
    with pytest.raises(CheckpointError):
        decode(encode(CHECKPOINT).replace(content, edited).replace(old, new), "state")


def test_saved_and_loaded(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "node-state")
    assert store.load() is None
    store.save(Checkpoint())
    store.save(CHECKPOINT)
    assert CheckpointStore(tmp_path / "node-state").load() == CHECKPOINT
    assert [path.name for path in tmp_path.iterdir()] == ["node-state"]
    assert (tmp_path / "node-state").stat().st_mode & 0o777 == 0o600


def test_a_corrupt_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "node-state"
    spoiled = encode(CHECKPOINT).replace(b"GPU-3", b"GPU-4")
    path.write_bytes(spoiled)
    store = CheckpointStore(path)
    with pytest.raises(CorruptCheckpointError, match=f"^{path}: checkpoint is corrupted: .* sha256:"):
        store.load()
    with pytest.raises(CorruptCheckpointError):
        store.save(CHECKPOINT)
    assert path.read_bytes() == spoiled


@pytest.mark.parametrize("fails", ["fsync", "fchmod"])
def test_a_failed_write_leaves_the_file_before(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(tmp_path / "node-state")
    store.save(Checkpoint())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, fails, full)
        with pytest.raises(CheckpointWriteError, match="cannot be written: No space left on device"):
            store.save(CHECKPOINT)
    assert store.load() == Checkpoint()
    assert [path.name for path in tmp_path.iterdir()] == ["node-state"]


def test_the_kubelets_files_under_its_root(tmp_path: Path) -> None:
    assert kubelet_cpu_state(tmp_path) is None
    assert kubelet_memory_state(tmp_path) is None
    (tmp_path / "cpu_manager_state").write_bytes(file("cpu-v4-1.37.json"))
    (tmp_path / "memory_manager_state").write_bytes(file("memory-v3-1.37.json"))
    cpus, memory = kubelet_cpu_state(tmp_path), kubelet_memory_state(tmp_path)
    assert (cpus and cpus.state, memory and memory.state) == (CPUS, MEMORY)
    (tmp_path / "cpu_manager_state").write_bytes(b"{")
    with pytest.raises(CheckpointError, match=f"^{tmp_path}/cpu_manager_state: not a checkpoint"):
        kubelet_cpu_state(tmp_path)


def test_a_state_is_gone_on_with_under_the_same_policies() -> None:
    policies = NodePolicies(cpu="static", memory="Static")
    assert to_go_on_with(CHECKPOINT, policies, "state") == CHECKPOINT.state
    with pytest.raises(
        StateError,
        match=r'^state: \[cpumanager\] configured policy "none" differs from state checkpoint policy "static"',
    ):
        to_go_on_with(CHECKPOINT, NodePolicies(), "state")


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        CheckpointStore(tmp_path).load()
