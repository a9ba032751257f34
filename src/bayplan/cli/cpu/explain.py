"""`bayplan cpu explain`: what keeps pods off a machine, and the nearest changes that would let them in.

`bayplan cpu explain throttling` is another question and has its own file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.cpu.broken_lines import broken, text_width
from bayplan.cli.cpu.plan_input import plan_options, planned, wish
from bayplan.cli.invocation import output_option
from bayplan.cli.main import Verb
from bayplan.model.errors import PermanentError

if TYPE_CHECKING:
    from bayplan.cli.cpu.plan_input import Planned
    from bayplan.node.plan import Outcome, Plan
    from bayplan.node.whatif import Change

_THROTTLING = Verb(
    "throttling",
    "bayplan.cli.cpu.explain_throttling",
    "throttling",
    "Say why a control group is throttled, and what would end it.",
)


class UnknownPodError(PermanentError):
    """The files have no such pod, or several."""

    code = "BP-N078"


class _Explain(click.Group):
    """A command that is a group only where its first word names a subcommand."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.commands:
            above = click.Context(click.Command(info_name), parent, info_name)  # whose path has no [POD] in it
            return self.commands[args[0]].make_context(args[0], args[1:], above, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.group(
    cls=_Explain,
    commands={"throttling": _THROTTLING},
    invoke_without_command=True,
    context_settings={"allow_interspersed_args": True},
    subcommand_metavar="| throttling [ARGS]...",
)
@click.argument("pod", required=False)
@plan_options
@click.option("--suggestions", type=click.IntRange(0, 100), default=5, show_default=True, help="At most so many.")
@output_option("json", "yaml")
def explain(
    pod: str | None, files: tuple[str, ...], machine: str | None, suggestions: int, output: str | None, **flags: Any
) -> None:
    """Say what keeps the refused pods, or one POD, off a machine, and the nearest changes that would let them in.

    POD is a name, or namespace/name. Every change that is told was tried on a copy of the node. The flags are those of
    `bayplan cpu plan`.

    \b
    bayplan cpu explain -f pods.yaml --machine dgx-h100 --topology-manager-policy=single-numa-node
    bayplan cpu explain -f pods.yaml trainer-3
    bayplan cpu explain throttling --group /kubepods/pod1/c1
    """
    if not files and difflib.get_close_matches(pod or "", ("throttling",)):
        raise click.UsageError(f"expected -f FILE with pods; or did you mean 'throttling' by '{pod}'?")
    found = planned(wish(files, machine, flags))
    groups = found.plan.alike if pod is None else [[_named(found.plan, pod)]]
    answers = [(group, _changes(found.plan, group[0], suggestions)) for group in groups]
    if output is not None:
        from bayplan.cli.cpu.plan_document import settings_document
        from bayplan.cli.printers import document

        whole = {**settings_document(found), "pods": [_document(*each) for each in answers]}
        click.echo(document(whole, output), nl=False)
        return
    click.echo("".join(f"{line}\n" for line in broken(page(found, answers), text_width())), nl=False)


def _named(plan: Plan, name: str) -> Outcome:
    """The pod of that name. Raises UnknownPodError."""
    names = [each.candidate.name for each in plan.outcomes]
    found = [each for each in plan.outcomes if name in (each.candidate.name, each.candidate.pod.metadata.name)]
    if len(found) == 1:
        return found[0]
    if found:
        which = ", ".join(each.candidate.name for each in found)
        raise UnknownPodError(f'"{name}" is the name of several pods: {which}', hint="write namespace/name")
    near = difflib.get_close_matches(name, [*names, *(each.partition("/")[2] for each in names)], n=3, cutoff=0.5)
    raise UnknownPodError(
        f'the files have no pod "{name}"', hint=f"did you mean {', '.join(near)}?" if near else f"there is {names[0]}"
    )


def _changes(plan: Plan, outcome: Outcome, most: int) -> list[Change]:
    from bayplan.node.whatif import situation, suggestions

    return [] if outcome.admitted else suggestions(situation(plan, outcome), most)


def page(found: Planned, answers: list[tuple[list[Outcome], list[Change]]]) -> Iterator[str]:
    """The answers for people."""
    from bayplan.node.reasons import policies_words

    yield f"{found.plan.machine.name}: {policies_words(found.plan.configuration.policies)}"
    if found.assumed:
        yield f"assumed: {' '.join(found.assumed)}"
    yield from found.notes
    if not answers:
        yield f"all pods are admitted ({len(found.plan.outcomes)}); `bayplan cpu plan` shows what they get"
    for group, changes in answers:
        yield ""
        yield from _answer(found.plan, group, changes)


def _answer(plan: Plan, group: list[Outcome], changes: list[Change]) -> Iterator[str]:
    from bayplan.cli.cpu.plan_page import blockage_lines, pool_table, refusal_headline
    from bayplan.node.plan import blockage, shares
    from bayplan.node.sets import format_list

    outcome = group[0]
    if outcome.admitted:
        yield f"{outcome.candidate.name} is admitted"
        for share in shares(plan, outcome):
            yield f"  {share.container}: {format_list(share.held.cpus) or 'the shared CPUs'}; {share.why}"
        return
    found = blockage(outcome)
    yield refusal_headline(group)
    yield from (f"  {line}" for line in blockage_lines(found))
    yield ""
    yield from (f"  {line}" for line in pool_table(found.pools))
    yield ""
    yield (
        "  It would be let in if (each was tried on a copy of the node)"
        if changes
        else "  No single change that was tried would let it in."
    )
    yield from (f"  {number}. {change}" for number, change in enumerate(changes, start=1))


def _document(group: list[Outcome], changes: list[Change]) -> dict[str, Any]:
    from bayplan.cli.cpu.plan_document import blockage_document, identity
    from bayplan.node.plan import blockage

    outcome = group[0]
    return {
        **identity(outcome),
        "alike": [each.candidate.name for each in group[1:]],
        "blocked": None if outcome.admitted else blockage_document(blockage(outcome)),
        "suggestions": [
            {"kind": change.kind.name.lower(), "summary": str(change), **change.document} for change in changes
        ],
    }
