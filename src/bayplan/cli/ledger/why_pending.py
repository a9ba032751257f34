"""`bayplan ledger why-pending`: every reason for which a pod waited, with its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger

if TYPE_CHECKING:
    from bayplan.ledger.questions.pending import WhyPending


@click.command("why-pending")
@click.argument("pod", metavar="POD|WORKLOAD")
@click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")
@output_option("json", "yaml", "csv")
@on_ledger
def why_pending(ledger: Ledger, pod: str, namespace: str | None, output: str | None) -> None:
    """Say why a pod waits or waited for a place; of a workload, why its pods could not be made.

    POD is a name, NAMESPACE/NAME or a uid; of several pods of a name the latest is meant.
    """

    async def ask(session: Session) -> WhyPending:
        from bayplan.ledger.questions.naming import UnknownNameError, find_pod, find_workload
        from bayplan.ledger.questions.pending import why_pending as ask_why

        scope = session.scope(namespace)
        try:
            subject = await find_pod(session.store, pod, scope)
        except UnknownNameError:
            return await ask_why(session.store, await find_workload(session.store, pod, scope), session.now)
        return await ask_why(session.store, subject, session.now)

    click.echo(rendered(ledger.run(ask), output), nl=False)


def rendered(why: WhyPending, output: str | None) -> str:
    """The sentence, and the reasons below it."""
    from bayplan.cli.ledger.printing import plain, time_text
    from bayplan.cli.printers import Column, Listing, Row, document, render
    from bayplan.model.ages import human_duration

    if output in ("json", "yaml"):
        return document({**plain(why), "sentence": why.sentence}, output)
    rows = [
        Row(
            [
                time_text(each.start),
                time_text(each.end, "now"),
                human_duration((why.at if each.end is None else each.end) - each.start),
                each.reason or "<not tried yet>",
                each.message,
            ],
            "",
            None,
        )
        for each in why.waits
    ]
    table = render(Listing([*map(Column, ("From", "Until", "For", "Reason", "Message"))], rows), output)
    if output == "csv":
        return table
    return f"{why.sentence}\n" + (f"\n{table}" if rows else "")
