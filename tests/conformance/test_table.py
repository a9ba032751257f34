"""Every recorded row of kube-apiserver is the row we make."""

from __future__ import annotations

from pathlib import Path

from bayplan.conformance.frame import Report, judge, read_cases, runner

VECTORS = Path(__file__).parent.parent / "vectors/apiserver/table.jsonl.gz"


def _report(cases: list[dict[str, object]]) -> Report:
    run, report = runner("apiserver/table"), Report()
    for case in cases:
        report.add(judge(run, case))
    return report


def test_all_rows_agree() -> None:
    cases = list(read_cases(VECTORS))
    report = _report(cases)
    assert "\n".join(report.lines()).endswith(f"agree {len(cases)}/{len(cases)}")
    assert not report.apart


def test_another_cell_disagrees_and_says_where() -> None:
    case = next(each for each in read_cases(VECTORS) if each["kind"] == "Node")
    case["expected"]["cells"][0] = "another"
    (verdict,) = _report([case]).disagreements
    assert verdict.difference.startswith("cells[0]: ")
