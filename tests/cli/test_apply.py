"""`bayplan apply`: the three-way patch, the files it reads, the diff it shows, and the cluster afterwards."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cli.manifests import ManifestError, read_manifests
from bayplan.cli.three_way import ANNOTATION, annotated, last_applied, three_way
from bayplan.cluster.embedded.patch.merge import merge_patch
from bayplan.cluster.embedded.patch.strategic import strategic_merge
from tests.cli.serving import Command, deployment

Doc = dict[str, Any]

_POD = "core.v1.Pod"


def _pod(*containers: Doc, **spec: Any) -> Doc:
    return {"spec": {"containers": [*containers], **spec}}


@pytest.mark.parametrize(
    ("said", "says", "live", "wanted"),
    [
        pytest.param(
            {"data": {"a": "1"}}, {"data": {"a": "2"}}, {"data": {"a": "1"}}, {"data": {"a": "2"}}, id="a change"
        ),
        pytest.param(
            {"data": {"a": "1", "b": "1"}},
            {"data": {"a": "1"}},
            {"data": {"a": "1", "b": "1"}},
            {"data": {"a": "1"}},
            id="what is said no longer goes",
        ),
        pytest.param(
            {"data": {"a": "1"}},
            {"data": {"a": "1"}},
            {"data": {"a": "1", "x": "9"}},
            {"data": {"a": "1", "x": "9"}},
            id="what others set stays",
        ),
        pytest.param({}, {"data": {"a": "1"}}, {"data": {"x": "9"}}, {"data": {"x": "9", "a": "1"}}, id="no memory"),
    ],
)
def test_maps_merge_three_ways(said: Doc, says: Doc, live: Doc, wanted: Doc) -> None:
    assert merge_patch(live, three_way(said, says)) == wanted


@pytest.mark.parametrize(
    ("said", "says", "live", "wanted"),
    [
        pytest.param(
            _pod({"name": "a"}),
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "a"}),
            _pod({"name": "a"}, {"name": "b"}),
            id="a new item goes where the file has it",
        ),
        pytest.param(
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "b"}),
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "b"}),
            id="an item said no longer goes",
        ),
        pytest.param(
            _pod({"name": "a"}),
            _pod({"name": "a", "image": "i"}),
            _pod({"name": "a"}, {"name": "sidecar"}),
            _pod({"name": "a", "image": "i"}, {"name": "sidecar"}),
            id="an item of others stays",
        ),
        pytest.param(
            _pod({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}),
            _pod({"name": "a", "env": [{"name": "Y", "value": "2"}]}),
            _pod({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}),
            _pod({"name": "a", "env": [{"name": "Y", "value": "2"}]}),
            id="lists within items",
        ),
        pytest.param(
            _pod({"name": "a", "args": ["x", "y"]}),
            _pod({"name": "a", "args": ["z"]}),
            _pod({"name": "a", "args": ["x", "y"]}),
            _pod({"name": "a", "args": ["z"]}),
            id="a list of one piece",
        ),
        pytest.param(
            _pod(volumes=[{"name": "v", "emptyDir": {}}]),
            _pod(volumes=[{"name": "v", "hostPath": {"path": "/a"}}]),
            _pod(volumes=[{"name": "v", "emptyDir": {}}]),
            _pod(volumes=[{"name": "v", "hostPath": {"path": "/a"}}]),
            id="one kind of volume instead of another",
        ),
    ],
)
def test_lists_merge_by_their_keys(said: Doc, says: Doc, live: Doc, wanted: Doc) -> None:
    merged = strategic_merge(live, three_way(said, says, _POD), _POD)
    assert merged == wanted
    assert strategic_merge(merged, three_way(says, says, _POD), _POD) == wanted, "and again changes nothing"


_TREES = st.recursive(
    st.integers() | st.text(max_size=3), lambda below: st.dictionaries(st.sampled_from("abc"), below), max_leaves=6
)
_DOCS = st.dictionaries(st.sampled_from("abc"), _TREES)


@given(_DOCS, _DOCS)
def test_an_object_that_only_we_write_is_in_the_end_what_the_file_says(said: Doc, says: Doc) -> None:
    assert _full(merge_patch(copy.deepcopy(said), three_way(said, says))) == _full(says)


def _full(value: Any) -> Any:
    """A map that got empty is as good as none."""
    if not isinstance(value, dict):
        return value
    return {key: below for key, each in value.items() if (below := _full(each)) != {}}


def test_the_memory_is_that_of_kubectl() -> None:
    written = annotated({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}})
    text = written["metadata"]["annotations"][ANNOTATION]
    assert text == '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},"name":"a"}}\n'
    assert last_applied(written) == json.loads(text)
    assert annotated(written) == written
    assert last_applied({"metadata": {"annotations": {ANNOTATION: "{broken"}}}) == {}


_CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def test_files_folders_lists_and_many_documents_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "b.yaml").write_text(f"# first\n---\n{_CONFIG % 'b1'}---\n\n---\n{_CONFIG % 'b2'}")
    (tmp_path / "a.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [yaml.safe_load(_CONFIG % "a")]})
    )
    (tmp_path / "notes.txt").write_text("no object")
    (tmp_path / "below" / "c.yml").write_text(_CONFIG % "c")
    assert [each.name for each in read_manifests([str(tmp_path)])] == ["a", "b1", "b2"]
    assert [each.name for each in read_manifests([str(tmp_path)], recursive=True)] == ["a", "b1", "b2", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "yaml: line 1: did not find expected node content", id="broken YAML"),
        pytest.param(f"{_CONFIG % 'a'}---\nfoo: 1\n", "5: apiVersion and kind not set", id="no kind, with its line"),
        pytest.param("- 1\n", "1: expected an object with apiVersion and kind; got list", id="a list"),
        pytest.param("", "no objects in", id="an empty file"),
    ],
)
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(ManifestError) as refused:
        read_manifests([str(file)])
    assert message in refused.value.message


def _write(path: Path, *documents: Doc) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def _config(name: str, **data: str) -> Doc:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_objects_are_created_changed_and_left_alone(command: Command, tmp_path: Path) -> None:
    file = _write(tmp_path / "a.yaml", _config("conf", a="1", b="1"), deployment("applied", 0))
    names = ["configmap/conf", "deployment.apps/applied"]
    assert command("apply", "-f", file).out == "".join(f"{name} created\n" for name in names)
    assert command("apply", "-f", file).out == "".join(f"{name} unchanged\n" for name in names)
    file = _write(tmp_path / "a.yaml", _config("conf", a="2"))
    assert command("apply", "-f", file) == (0, "configmap/conf configured\n", "")
    assert json.loads(command("get", "cm/conf", "-o", "json").out)["data"] == {"a": "2"}


@pytest.mark.parametrize("way", ["client", "server"])
def test_a_dry_run_shows_what_would_change_and_changes_nothing(command: Command, tmp_path: Path, way: str) -> None:
    command("apply", "-f", _write(tmp_path / "a.yaml", _config("dry", a="1", b="1")))
    out = command("apply", "-f", _write(tmp_path / "a.yaml", _config("dry", a="2")), f"--dry-run={way}").out
    said, *lines = out.splitlines()
    assert said == f"configmap/dry configured ({'server ' * (way == 'server')}dry run)"
    assert [line for line in lines if line[0] in "+-"][2:] == ["-  a: '1'", "-  b: '1'", "+  a: '2'"]
    assert json.loads(command("get", "cm/dry", "-o", "json").out)["data"] == {"a": "1", "b": "1"}


def test_server_side_apply_refuses_what_others_own_unless_forced(command: Command, tmp_path: Path) -> None:
    flags = ["--server-side", "-f", _write(tmp_path / "a.yaml", _config("owned", a="1"))]
    assert command("apply", *flags, "--field-manager", "other").out == "configmap/owned serverside-applied\n"
    file = _write(tmp_path / "a.yaml", _config("owned", a="2"))
    code, _, err = command("apply", "--server-side", "-f", file)
    assert (code, 'conflict with "other"' in err) == (1, True)
    assert command("apply", "--server-side", "--force-conflicts", "-f", file).code == 0


def test_a_refusal_does_not_keep_the_others_back(command: Command, tmp_path: Path) -> None:
    bad = _config("Bad_Name")
    code, out, err = command("apply", "-f", _write(tmp_path / "a.yaml", bad, _config("after", a="1")))
    assert (code, out) == (1, "configmap/after created\n")
    assert "Bad_Name" in err


@pytest.mark.parametrize(
    ("document", "flags", "talk"),
    [
        pytest.param(
            {**_config("x"), "kind": "Nope"}, [], 'the server has no kind "Nope" in "v1"', id="an unknown kind"
        ),
        pytest.param({**_config("x"), "metadata": {}}, [], "metadata.name not set", id="no name"),
        pytest.param(
            {**_config("x"), "metadata": {"name": "x", "namespace": "a"}},
            ["-n", "b"],
            'the object names the namespace "a", -n "b"',
            id="another namespace than -n",
        ),
        pytest.param(
            {**_config("x"), "bogus": 1}, [], 'strict decoding error: unknown field "bogus"', id="an unknown field"
        ),
    ],
)
def test_what_cannot_be_applied_is_said_with_its_place(
    command: Command, tmp_path: Path, document: Doc, flags: list[str], talk: str
) -> None:
    file = _write(tmp_path / "a.yaml", document)
    code, out, err = command("apply", "-f", file, *flags)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {file}:1: ")
    assert talk in err


def test_a_missing_file_is_one_line(command: Command) -> None:
    assert command("apply", "-f", "/nope.yaml") == (1, "", "error: /nope.yaml: No such file or directory\n")
    assert command("apply", "-f", "https://example.com/x.yaml").code == 2
