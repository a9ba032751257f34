"""`bayplan ledger why-gone`: why a pod is no more, in a sentence, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.ledger.asking import Ledger, Session, on_ledger

if TYPE_CHECKING:
    from bayplan.ledger.questions.gone import WhyGone


@click.command("why-gone")
@click.argument("pod")
@click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")
@output_option("wide", "json", "yaml")
@on_ledger
def why_gone(ledger: Ledger, pod: str, namespace: str | None, output: str | None) -> None:
    """Say why a pod is no more: who made it go and for whom, or how it ended. -o wide lists what that rests on.

    POD is a name, NAMESPACE/NAME or a uid; of several pods of a name the latest is meant.
    """

    async def ask(session: Session) -> WhyGone:
        from bayplan.ledger.questions.gone import why_gone as ask_why
        from bayplan.ledger.questions.naming import find_pod

        return await ask_why(session.store, await find_pod(session.store, pod, session.scope(namespace)))

    click.echo(rendered(ledger.run(ask), output), nl=False)


def rendered(why: WhyGone, output: str | None) -> str:
    """The sentence; wide, with everything that was told."""
    from bayplan.cli.ledger.printing import plain
    from bayplan.cli.printers import columns, document
    from bayplan.model.clock import rfc3339

    if output in ("json", "yaml"):
        return document(plain(why), output)
    if output is None:
        return f"{why.sentence}\n"
    told = [
        (each.at, each.rule, " ".join(filter(None, (each.by, each.for_pod))), each.message) for each in why.disruptions
    ]
    told += [(each.at, f"exit {each.exit_code}", each.subject, each.reason) for each in why.exits]
    if why.asked_at is not None:
        told.append((why.asked_at, "deletion asked for", "", ""))
    if why.pod.gone_at is not None:
        told.append((why.pod.gone_at, "gone", "", "inferred" if why.pod.end_inferred else ""))
    if not told:
        return f"{why.sentence}\n"
    lines = [[rfc3339(at), *rest] for at, *rest in sorted(told)]
    return f"{why.sentence}\n\n{columns([['TIME', 'WHAT', 'WHO', 'MESSAGE'], *lines])}"
