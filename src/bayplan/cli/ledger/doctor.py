"""`bayplan ledger doctor`: what is wrong with a ledger, with a code and a cure for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, on_ledger
from bayplan.cli.targets import Target, on_cluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bayplan.cli.printers import Listing
    from bayplan.cluster.live.config import Access
    from bayplan.ledger.questions.doctor.examine import Account, Examination
    from bayplan.ledger.questions.doctor.findings import Finding, Report
    from bayplan.ledger.store.sql import SqlStore
    from bayplan.service.settings import LedgerSettings


def _account(_: click.Context, __: click.Parameter, value: str | None) -> Account | None:
    from bayplan.ledger.questions.doctor.examine import Account

    if value is None:
        return None
    namespace, slash, name = value.partition("/")
    if not (namespace and slash and name):
        raise click.BadParameter(f'expected NAMESPACE/NAME; got "{value}"')
    return Account(namespace, name)


@click.command()
@click.option("--offline", is_flag=True, help="Ask the database alone, not the cluster.")
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    callback=_account,
    help="ServiceAccount whose rights are looked at, such as bayplan/bayplan-ledger, not one's own.",
)
@output_option("wide", "json", "yaml", "csv")
@on_ledger
@on_cluster
def doctor(ledger: Ledger, target: Target, offline: bool, account: Account | None, output: str | None) -> int:
    """Look for what is wrong: database, schema, rights, listeners, owners, finalizers, rows that disagree.

    Nothing is changed. The exit code is 1 where something is wrong for certain.
    """
    import asyncio

    report = asyncio.run(_examine(ledger, None if offline else target, account))
    click.echo(rendered(report, output), nl=False)
    return 0 if report.healthy else 1


def _settings(ledger: Ledger, account: Account | None) -> LedgerSettings:
    """Those that hold; an account's ledger has its Lease beside it, as `manifest` has it, unless it is said where."""
    import msgspec

    if account is None or not ledger.is_default("lease_namespace"):
        return ledger.settings
    return msgspec.structs.replace(ledger.settings, lease_namespace=account.namespace)


async def _examine(ledger: Ledger, target: Target | None, account: Account | None) -> Report:
    from bayplan.ledger.questions.doctor.examine import Examination, examine
    from bayplan.ledger.questions.doctor.findings import Finding, Report
    from bayplan.ledger.settings import gpu_vendors
    from bayplan.model.clock import SystemClock
    from bayplan.model.errors import BayplanError

    opened: list[SqlStore] = []

    async def opening() -> SqlStore:
        opened.append(await ledger.open())
        return opened[0]

    now, settings = SystemClock().now(), _settings(ledger, account)
    vendors = gpu_vendors(settings)
    wanted = Examination(now=now, cluster=ledger.cluster, vendors=vendors, settings=settings, account=account)
    try:
        if target is None:
            return await examine(opening, None, wanted)
        try:
            access = target.access()
        except BayplanError as error:
            report = await examine(opening, None, wanted)
            finding = Finding("LD014", "cluster", error.message, error.hint)
            return Report((*report.findings, finding), report.checked, (*report.skipped, "what the cluster tells"))
        return await _with_cluster(access, opening, wanted, ledger.settings.cluster)
    finally:
        for store in opened:
            await store.close()


async def _with_cluster(
    access: Access, opening: Callable[[], Awaitable[SqlStore]], wanted: Examination, setting: str
) -> Report:
    import msgspec

    from bayplan.cluster.live.cluster import LiveCluster
    from bayplan.ledger.discovering import LiveKinds
    from bayplan.ledger.process import cluster_id
    from bayplan.ledger.questions.doctor.examine import examine
    from bayplan.model.clock import SystemClock
    from bayplan.model.errors import BayplanError

    async with LiveCluster(access) as cluster:
        kinds = LiveKinds(access, SystemClock())
        try:
            live = await cluster_id(cluster, setting)
        except BayplanError:  # the examination meets the same refusal, and says so
            live = None
        try:
            return await examine(opening, cluster, msgspec.structs.replace(wanted, find=kinds.find, live=live))
        finally:
            await kinds.close()


def _table(findings: Sequence[Finding]) -> Listing:
    from bayplan.cli.printers import Column, Listing, Row

    rows = [
        Row([each.code, each.meaning.level, each.subject, each.what, each.meaning.title, each.remedy], each.code, None)
        for each in findings
    ]
    return Listing([*map(Column, ("Code", "Level", "Subject", "What", "Title", "Cure"))], rows)


def rendered(report: Report, output: str | None) -> str:
    """The findings, the worst first; what was looked at, and what could not be. As CSV the findings alone."""
    from bayplan.cli.printers import document, render

    findings = sorted(report.findings, key=lambda each: (each.meaning.level != "error", each.code, each.subject))
    if output in ("json", "yaml"):
        items = [
            {
                "code": each.code,
                "level": each.meaning.level,
                "title": each.meaning.title,
                "subject": each.subject,
                "what": each.what,
                "cure": each.remedy,
            }
            for each in findings
        ]
        whole = {
            "kind": "LedgerReport",
            "healthy": report.healthy,
            "checked": report.checked,
            "skipped": report.skipped,
        }
        return document({**whole, "items": items}, output)
    if output == "csv":
        return render(_table(findings), output)
    lines = [*render(_table(findings), output).splitlines(), ""] if output and findings else []
    for each in () if output else findings:
        lines += [f"{each.code}  {each.meaning.level}: {each.meaning.title}", f"       {each.subject}: {each.what}"]
        lines += [f"       cure: {each.remedy}", ""]
    lines += [f"skipped  {each}" for each in report.skipped]
    lines.append(
        f"checked  {', '.join(report.checked)}: {len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}"
    )
    return "".join(f"{line}\n" for line in lines)
