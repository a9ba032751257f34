"""Packing a version of an object: nothing is lost, little is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.rows import PodSnapshot, Rows, SpecBlob
from bayplan.ledger.snapshots import CURRENT, Packed, SnapshotError, dictionary, lay_out, pack, squeezed, unpack
from bayplan.model.clock import Instant
from tests.ledger.store.pod_lives import pod_lives

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=10,
)
_OTHERS = st.dictionaries(_TEXT.filter(lambda name: name not in ("kind", "apiVersion", "metadata")), _JSON, max_size=4)
_META = st.fixed_dictionaries({"name": _TEXT, "labels": st.dictionaries(_TEXT, _TEXT, min_size=1, max_size=3)})


def blob(packed: Packed) -> bytes:
    """A specification as it is stored."""
    rows = Rows()
    rows.add(packed.blob("c", Instant(0)))
    (stored,) = squeezed(rows)
    assert isinstance(stored, SpecBlob)
    return stored.data


def there_and_back(obj: Object) -> Any:
    packed = pack(obj)
    spec = blob(packed) if packed.spec_hash else None
    return msgspec.json.decode(unpack(packed.state, spec))


@given(metadata=_META, others=_OTHERS, spec=st.none() | _JSON)
def test_what_comes_back_is_equal_as_json(metadata: dict[str, Any], others: dict[str, Any], spec: Any) -> None:
    head = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
    document = head | others | ({} if spec is None else {"spec": spec})
    document["metadata"]["name"] = metadata["name"] or "x"
    obj = Object.from_raw(POD, msgspec.json.encode(document))
    assert there_and_back(obj) == document


async def test_pods_that_the_dictionary_has_not_seen_are_small() -> None:
    versions = await pod_lives(2, workloads=12)
    packed = [pack(each) for each in versions]
    assert [there_and_back(each) for each in versions] == [each.doc() for each in versions]
    whole = sum(len(each.raw()) for each in versions)
    specs = {each.spec_hash: blob(each) for each in packed}
    stored = sum(len(each.state) for each in packed) + sum(map(len, specs.values()))
    assert stored * 10 < whole, f"{stored / len(versions):.0f} bytes a version of {whole / len(versions):.0f}"
    assert len(specs) * 2 < len(versions), "versions share their specification"


@pytest.mark.parametrize("count", [pytest.param(3, id="a few"), pytest.param(40, id="many")])
def test_versions_laid_out_and_compressed_together_are_as_those_packed_one_by_one(count: int) -> None:
    pods = [Object.from_raw(POD, b'{"metadata":{"name":"p%d"},"spec":{},"status":{}}' % i) for i in range(count)]
    rows = Rows()
    for each in pods:
        plain = lay_out(each)
        rows.add(
            PodSnapshot(
                cluster="c",
                pod_uid=each.name,
                resource_version=1,
                namespace="",
                name=each.name,
                observed_at=Instant(0),
                spec_hash=plain.spec_hash,
                state=plain.state,
            )
        )
    made = [row for row in squeezed(rows) if isinstance(row, PodSnapshot)]
    assert [(row.spec_hash, row.state, row.dictionary) for row in made] == [
        (packed.spec_hash, packed.state, CURRENT) for packed in map(pack, pods)
    ]
    assert list(squeezed(squeezed(rows))) == made
    assert [unpack(row.state, None) for row in rows if isinstance(row, PodSnapshot)] == [
        unpack(row.state, None) for row in made
    ]


def test_managed_fields_are_kept() -> None:
    raw = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[{"manager":"kubelet"}]},"spec":{}}'
    assert there_and_back(Object.from_raw(POD, raw))["metadata"]["managedFields"] == [{"manager": "kubelet"}]


def test_an_unknown_dictionary_is_named() -> None:
    trained = zstandard.train_dictionary(1024, [b"%d and again %d" % (i, i) * 9 for i in range(200)], dict_id=77)
    state = zstandard.ZstdCompressor(dict_data=trained).compress(b"{}")
    with pytest.raises(SnapshotError, match="packed with dictionary 77, which this program does not have"):
        unpack(state, None)


@pytest.mark.parametrize("damage", [pytest.param(b"", id="nothing"), pytest.param(b"(a frame?", id="something else")])
def test_a_damaged_version_says_so(damage: bytes) -> None:
    with pytest.raises(SnapshotError, match="is damaged"):
        unpack(damage, None)


def test_a_version_that_is_cut_short_says_so() -> None:
    packed = pack(Object.from_raw(POD, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}'))
    with pytest.raises(SnapshotError, match="is damaged"):
        unpack(packed.state[:-4], None)


def test_threads_do_not_disturb_each_other() -> None:
    raws = [b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%d"},"spec":{"x":"%d"}}' % (i, i) for i in range(400)]
    objects = [Object.from_raw(POD, raw) for raw in raws]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(there_and_back, objects)) == [each.doc() for each in objects]


def test_the_current_dictionary_has_its_own_number() -> None:
    assert dictionary(CURRENT).dict_id() == CURRENT
