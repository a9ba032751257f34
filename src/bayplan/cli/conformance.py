"""`bayplan conformance FAMILY FILE`: upstream's recorded answers against ours."""

from __future__ import annotations

import sys
from pathlib import Path

import click


class _Conformance(click.Command):
    """Its help names the families, which are known when it is asked for."""

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        from bayplan.conformance.frame import FAMILIES

        with formatter.section("Families"):
            for name in sorted(FAMILIES):
                formatter.write_text(name)


@click.command(cls=_Conformance)
@click.argument("family")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kind", "group", help="Only the cases of one kind or group.")
@click.option("--id", "only", help="Only the case with this id.")
@click.option("--most", type=int, default=20, show_default=True, help="How many disagreements to print.")
def conformance(family: str, file: Path, group: str | None, only: str | None, most: int) -> None:
    """Run the recorded answers in FILE (.jsonl or .jsonl.gz) of a FAMILY and say how many agree.

    The last line is `agree N/M`; the exit code is 0 only if all of them do.
    """
    from bayplan.conformance.frame import BrokenVectorsError, Report, family_of, judge, read_cases, runner

    run = runner(family)
    report = Report()
    for case in read_cases(file):
        if only is None or case.get("id") == only:
            verdict = judge(run, case)
            if group is None or group in (case.get("kind"), verdict.group):
                report.add(verdict)
    if report.empty:
        raise BrokenVectorsError(f"{file}: no such case", hint="leave out --kind and --id to run all that the file has")
    if report.is_of_another_family:
        first = report.disagreements[0]
        near = family_of(file)
        raise BrokenVectorsError(
            f"{file}: none of its cases could be run as {family}; {first.id} {first.difference}",
            hint=f"bayplan conformance {near} {file}" if near not in ("", family) else "see --help for the families",
        )
    for line in report.lines(most):
        click.echo(line)
    sys.exit(0 if report.all_agree else 1)
