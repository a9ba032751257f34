"""`bayplan cpu explain throttling`: why a group is throttled, what would end it, and the proof where it is wanted."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bayplan.cli.invocation import output_option
from bayplan.cli.spans import span

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from bayplan.agent.probe import Tried
    from bayplan.node.cgroup.port import Bandwidth
    from bayplan.node.throttling.causes import Explanation
    from bayplan.service.durations import Duration

T = TypeVar("T")


@click.command()
@click.option("--group", required=True, metavar="GROUP", help="The control group, such as /kubepods/pod1/c1.")
@click.option(
    "--for", "lasts", default="10s", show_default=True, callback=span, metavar="SPAN", help="How long to look."
)
@click.option("--try", "trying", is_flag=True, help="Apply the advice for as long, undo it, and print both rates.")
@click.option("--beside-kubelet", is_flag=True, help="With --try: also on a group of the kubelet or the runtime.")
@click.option("--cgroup-root", default="/sys/fs/cgroup", metavar="DIR", help="Where cgroups are mounted.")
@output_option("json", "yaml")
def throttling(
    group: str, lasts: Duration, trying: bool, beside_kubelet: bool, cgroup_root: str, output: str | None
) -> None:
    """Say why a control group is throttled, and which quota, period or burst would end it.

    The group is looked at several times a period while its processes do what they always do. Nothing is written
    without --try; what is tried is undone at the end, on a signal, and even when the command is killed.
    """
    from bayplan.agent.kubelet import may_write
    from bayplan.agent.probe import try_remedy, watch_closely, written_by_a_keeper
    from bayplan.agent.process import journal_folder
    from bayplan.agent.reading import group_named
    from bayplan.agent.rights import check_rights
    from bayplan.cli.cpu.camel_names import camel_names
    from bayplan.cli.printers import document
    from bayplan.model.clock import SystemClock
    from bayplan.node.cgroup.detect import find_tree
    from bayplan.node.throttling.causes import explain

    if beside_kubelet and not trying:
        raise click.UsageError("--beside-kubelet is about writing: expected --try")
    tree, clock = find_tree(cgroup_root), SystemClock()
    found = group_named(tree, group)
    if trying:
        may_write(found.path, beside_kubelet=beside_kubelet)
        check_rights(cgroup_root)
        moment = written_by_a_keeper(journal_folder() / "try.journal", clock, cgroup_root)
        tried = _until_terminated(try_remedy(tree, found.path, clock, lasts.micros, for_a_moment=moment))
        lines = [*explained(found.path, tried.before), *proof(tried)]
        value: object = tried
    else:
        explanation = explain(_until_terminated(watch_closely(found, clock, lasts.micros)))
        lines = [*explained(found.path, explanation)]
        value = explanation
    click.echo(document(camel_names(value), output) if output else "".join(f"{line}\n" for line in lines), nl=False)


def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """Run; a signal ends it as Ctrl-C does, so that what was tried is undone, and with the exit code of that signal."""
    heard: list[int] = []

    async def whole() -> T:
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

        def end(number: int) -> None:
            heard.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end, number)
        return await task

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise SystemExit(128 + heard[0]) from None


def explained(path: str, explanation: Explanation) -> Iterator[str]:
    """An explanation for people."""
    yield f"{path}: {explanation.cause}"
    yield f"  {explanation.summary}"
    yield ""
    yield f"  throttled  {explanation.throttle_rate:.1%} of its periods"
    limit = "" if explanation.limit_cpus is None else f" of {explanation.limit_cpus:.2f}"
    yield f"  usage      {explanation.usage_cpus:.2f}{limit} CPUs"
    for reason in explanation.reasons:
        yield f"  - {reason}"
    for index, remedy in enumerate(explanation.remedies):
        yield ""
        yield f"  {'would end it' if not index else 'or'}: {bandwidth_text(remedy.bandwidth)}"
        yield f"    {remedy.why}"
    for advice in explanation.advice:
        yield ""
        yield f"  or: {advice}"


def bandwidth_text(bandwidth: Bandwidth) -> str:
    """A limit in words."""
    quota = "no quota" if bandwidth.quota_us is None else f"quota {bandwidth.quota_us} us"
    limit = "" if bandwidth.cpus is None else f" ({bandwidth.cpus:.2f} CPUs)"
    burst = f", burst {bandwidth.burst_us} us" if bandwidth.burst_us else ""
    return f"{quota} every {bandwidth.period_us} us{burst}{limit}"


def proof(tried: Tried) -> Iterator[str]:
    """What trying showed."""
    yield ""
    yield f"tried: {bandwidth_text(tried.remedy.bandwidth)}, and undone"
    yield f"  throttled before  {tried.before.throttle_rate:.1%}"
    yield f"  throttled after   {tried.after.throttle_rate:.1%}"
