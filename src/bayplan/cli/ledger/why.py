"""`bayplan ledger why-gone` and `why-pending`: why a pod is no more, or waited: a sentence, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger

if TYPE_CHECKING:
    from bayplan.ledger.questions.gone import WhyGone
    from bayplan.ledger.questions.pending import WhyPending
    from bayplan.ledger.rows import GpuPod, GpuWorkload

W = TypeVar("W", "WhyGone", "WhyPending")
_namespace = click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")


@click.command("why-gone")
@click.argument("pod")
@_namespace
@output_option("wide", "json", "yaml", "csv")
@on_ledger
def why_gone(ledger: Ledger, pod: str, namespace: str | None, output: str | None) -> None:
    """Say why a pod is no more: who made it go and for whom, or how it ended. -o wide and csv list what that rests on.

    POD is a name, NAMESPACE/NAME or a uid; of several pods of a name the latest is meant.
    """

    async def ask(session: Session) -> WhyGone:
        from bayplan.ledger.questions.gone import why_gone as ask_why
        from bayplan.ledger.questions.naming import find_pod

        return await ask_why(session.store, await find_pod(session.store, pod, session.scope(namespace)))

    click.echo(_rendered(ledger.run(ask), output, _ends), nl=False)


@click.command("why-pending")
@click.argument("pod", metavar="POD|WORKLOAD")
@_namespace
@output_option("wide", "json", "yaml", "csv")
@on_ledger
def why_pending(ledger: Ledger, pod: str, namespace: str | None, output: str | None) -> None:
    """Say why a pod waits or waited for a place; of a workload, why its pods do, or could not be made.

    POD is a name, NAMESPACE/NAME or a uid; of several pods of a name the latest is meant.
    """

    async def ask(session: Session) -> WhyPending:
        from bayplan.ledger.questions.naming import UnknownNameError, find_pod, find_workload
        from bayplan.ledger.questions.pending import why_pending as ask_why

        scope = session.scope(namespace)
        subject: GpuPod | GpuWorkload
        try:
            subject = await find_pod(session.store, pod, scope)
        except UnknownNameError:
            subject = await find_workload(session.store, pod, scope)
        return await ask_why(session.store, subject, session.known_of(subject.cluster, session.now))

    click.echo(_rendered(ledger.run(ask), output, _waits), nl=False)


def _rendered(why: W, output: str | None, table: Callable[[W, str | None], str]) -> str:
    """The sentence, and the table below it, if there is one; the table alone as CSV."""
    from bayplan.cli.ledger.printing import plain
    from bayplan.cli.printers import document

    if output in ("json", "yaml"):
        return document({**plain(why), "sentence": why.sentence}, output)
    below = table(why, output)
    return below if output == "csv" else f"{why.sentence}\n" + (f"\n{below}" if below else "")


def _ends(why: WhyGone, output: str | None) -> str:
    """Everything that was told of a pod's end, for those who want it wide."""
    from bayplan.cli.printers import Column, Listing, Row, render
    from bayplan.model.clock import rfc3339

    told = [
        (each.at, each.rule, " ".join(filter(None, (each.by, each.for_pod))), each.message) for each in why.disruptions
    ]
    told += [(each.at, f"exit {each.exit_code}", each.subject, each.reason) for each in why.exits]
    if why.asked_at is not None:
        told.append((why.asked_at, "deletion asked for", "", ""))
    if why.pod.gone_at is not None:
        told.append((why.pod.gone_at, "gone", "", "inferred" if why.gone_after is not None else ""))
    rows = [Row([rfc3339(at), *rest], "", None) for at, *rest in sorted(told)]
    table = render(Listing([*map(Column, ("Time", "What", "Who", "Message"))], rows), output)
    return table if output == "csv" or (rows and output) else ""


def _waits(why: WhyPending, output: str | None) -> str:
    """Every reason for which it waited, in order of time; of a workload also those of its pods."""
    from bayplan.cli.ledger.printing import time_text
    from bayplan.cli.printers import Column, Listing, Row, render
    from bayplan.model.ages import human_duration

    told = [(each, one) for one in (why, *why.pods) for each in one.waits]
    rows = [
        Row(
            [
                *([one.subject.name] if why.pods else []),
                time_text(each.start),
                time_text(each.end, "now"),
                human_duration((why.at if each.end is None else each.end) - each.start),
                each.reason or "<not tried yet>",
                each.message,
            ],
            "",
            None,
        )
        for each, one in sorted(told, key=lambda both: both[0].start)
    ]
    heads = (*(["Pod"] if why.pods else []), "From", "Until", "For", "Reason", "Message")
    table = render(Listing([*map(Column, heads)], rows), output)
    return table if rows or output else ""
