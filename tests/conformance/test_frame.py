"""The frame: what it prints, how it exits, and what it says of files and families that are not there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import main
from bayplan.conformance import frame
from bayplan.conformance.frame import BrokenVectorsError, FamilyUnknownError, Report, Verdict, judge, read_cases, runner

Capture = pytest.CaptureFixture[str]


def echo(case: dict[str, Any]) -> Verdict:
    """A family whose cases say themselves how they come out."""
    return Verdict(case["id"], case["kind"], case["agrees"], case.get("difference", ""), case.get("apart", ""))


@pytest.fixture(autouse=True)
def _echoing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frame.FAMILIES, "test/echo", f"{__name__}:echo")


def case(id_: str, *, kind: str = "Pod", agrees: bool = True, **more: str) -> dict[str, Any]:
    return {"id": id_, "kind": kind, "agrees": agrees, **more}


def written(folder: Path, *cases: dict[str, Any], name: str = "cases.jsonl") -> Path:
    text = "".join(f"{json.dumps(each)}\n" for each in cases).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


MIXED = [
    case("1"),
    case("2", agrees=False, difference="spec.x: 1, expected 2"),
    case("3", kind="Node"),
    case("4", kind="Node", agrees=False, apart="unstable"),
    case("5", apart="unstable"),
    case("6", apart="endless"),
]


def test_the_report_has_disagreements_kinds_what_is_apart_and_the_total() -> None:
    report = Report()
    for each in MIXED:
        report.add(echo(each))
    assert [*report.lines()] == [
        "2 Pod: spec.x: 1, expected 2",
        "Pod agree 1/2",
        "Node agree 1/1",
        "set apart 3: 2 unstable, 1 endless",
        "agree 2/3",
    ]
    assert not report.all_agree


def test_at_most_twenty_disagreements_are_shown_and_the_rest_is_counted() -> None:
    report = Report()
    for number in range(25):
        report.add(echo(case(str(number), agrees=False, difference="no")))
    lines = [*report.lines()]
    assert lines[:20] == [f"{number} Pod: no" for number in range(20)]
    assert lines[20:] == ["(+5 more disagreements)", "Pod agree 0/25", "agree 0/25"]


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.jsonl.gz"])
@pytest.mark.parametrize(("agrees", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_all_agree(
    tmp_path: Path, capsys: Capture, name: str, agrees: bool, code: int
) -> None:
    path = written(tmp_path, case("1"), case("2", agrees=agrees), name=name)
    assert main(["conformance", "test/echo", str(path)]) == code
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == (f"agree {1 + agrees}/2", "")


def test_what_is_set_apart_does_not_count(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, case("1"), case("2", agrees=False, apart="unstable"))
    assert main(["conformance", "test/echo", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["set apart 1: 1 unstable", "agree 1/1"]


@pytest.mark.parametrize(
    ("options", "last"),
    [
        pytest.param(["--kind", "Node"], "agree 1/1", id="one kind"),
        pytest.param(["--id", "2"], "agree 0/1", id="one case"),
        pytest.param(["--most", "0"], "agree 2/3", id="no disagreement shown"),
    ],
)
def test_a_part_can_be_asked_for(tmp_path: Path, capsys: Capture, options: list[str], last: str) -> None:
    main(["conformance", "test/echo", str(written(tmp_path, *MIXED)), *options])
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.parametrize("options", [[], ["--id", "ghost"], ["--kind", "Ghost"]])
def test_no_case_at_all_is_no_agreement(tmp_path: Path, capsys: Capture, options: list[str]) -> None:
    path = written(tmp_path, *(MIXED if options else []))
    assert main(["conformance", "test/echo", str(path), *options]) == 1
    assert f"error: {path}: no such case" in capsys.readouterr().err


def test_a_core_that_breaks_disagrees_and_the_others_still_count(tmp_path: Path, capsys: Capture) -> None:
    broken = {"id": "b", "kind": "Pod"}
    path = written(tmp_path, case("1"), broken, case("3"))
    assert main(["conformance", "test/echo", str(path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("b Pod: broke with KeyError('agrees') at test_frame.py:")
    assert out[-1] == "agree 2/3"
    assert not judge(echo, {}).agrees


def test_an_unknown_family_names_the_known_ones(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(FamilyUnknownError):
        runner("apiserver/ghost")
    assert main(["conformance", "apiserver/ghost", str(written(tmp_path, *MIXED))]) == 1
    err = capsys.readouterr().err
    assert 'error: no family "apiserver/ghost" of vectors' in err
    assert "apiserver/admission, apiserver/patch" in err


@pytest.mark.parametrize("family", sorted(frame.FAMILIES))
def test_every_family_has_its_runner(family: str) -> None:
    assert callable(runner(family))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(b'{"id":', "truncated", id="a line that breaks off"),
        pytest.param(b"[1]", "Expected `object`, got `array`", id="a list"),
        pytest.param(b'"\xff"', "", id="no text"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, capsys: Capture, line: bytes, told: str) -> None:
    path = written(tmp_path, case("1"), case("2"))
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
    assert main(["conformance", "test/echo", str(path)]) == 1
    err = capsys.readouterr().err
    assert f"error: {path}:4: " in err
    assert told in err
    assert "hint: expected one JSON object a line" in err


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"not gzip", id="no gzip"),
        pytest.param(gzip.compress(b"{}\n" * 1000)[:-10], id="a file that breaks off"),
        pytest.param(gzip.compress(bytes(range(256)) * 50)[:40] + b"\xff" * 40, id="a file with rubbish in it"),
        pytest.param(None, id="no file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: Capture, content: bytes | None) -> None:
    path = tmp_path / "cases.jsonl.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BrokenVectorsError):
        [*read_cases(path)]
    assert main(["conformance", "test/echo", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: {path}: ")
    assert "hint: give a .jsonl or .jsonl.gz file" in err


def test_a_file_of_another_family_is_one_error_that_names_its_own(capsys: Capture) -> None:
    file = Path(__file__).parents[1] / "vectors/cpuburst/koord_cpuburst.jsonl.gz"
    assert main(["conformance", "kubelet/topology_merge", str(file)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "none of its cases could be run as kubelet/topology_merge" in told.err
    assert f"hint: bayplan conformance cpuburst/koord_cpuburst {file}" in told.err


def test_help_names_the_families(capsys: Capture) -> None:
    assert main(["conformance", "--help"]) == 0
    assert set(frame.FAMILIES) <= set(capsys.readouterr().out.split())
