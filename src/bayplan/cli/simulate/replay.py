"""`bayplan simulate replay`: a recording or a trace in its own time under another policy, beside what was; or a run."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayplan.cli.invocation import Invocation, output_option
from bayplan.cli.simulate.run import twin_option
from bayplan.cli.targets import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bayplan.model.clock import Instant
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.recording.comparison import Account, Comparison
    from bayplan.simulate.recording.replay import Outcome
    from bayplan.simulate.recording.story import Story

Doc = dict[str, Any]
_FILE = click.Path(path_type=Path, dir_okay=False)


def _policy(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from bayplan.scheduling.policies import POLICIES

    if value.lower() not in POLICIES:
        raise click.BadParameter(f'no policy "{value}"; there are {", ".join(POLICIES)}')
    return value.lower()


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nodes", type=_FILE, metavar="CSV", help="FILE is the pods of an openb trace, and these its nodes.")
@click.option("--engine", type=click.Choice(["embedded", "lab"]), default="embedded", show_default=True)
@click.option("--policy", callback=_policy, default="default", show_default=True, help="By which pods are placed.")
@click.option("--scheduler-config", type=_FILE, metavar="FILE", help="A KubeSchedulerConfiguration, not a policy.")
@click.option("--keep-placed", is_flag=True, help="Leave pods where they are that were placed when it began.")
@click.option("--seed", type=int, default=0, show_default=True, help="For policies that draw lots.")
@click.option("--scenario", metavar="FILE", help="FILE is the log of a run, and this its scenario.")
@twin_option
@output_option("json", "yaml")
@click.pass_obj
@click.pass_context
def replay(ctx: click.Context, invocation: Invocation, /, file: Path, **flags: Any) -> int:
    """Replay a recording in virtual time: the same pods at the same times, placed by a policy.

    \b
    bayplan simulate replay prod.rec --policy fgd
    bayplan simulate replay prod.rec --scheduler-config new.yaml -o json
    bayplan simulate replay prod.rec --engine lab         by the real kube-scheduler, in compressed order
    bayplan simulate replay openb_pod_list_default.csv --nodes openb_node_list_gpu_node.csv --policy fgd
    bayplan simulate replay runs/fgd --scenario week.yaml      a run of `simulate run --out` again, as it was

    Pods come without a node, and run as long as they ran. Compressed order: a real scheduler's time cannot be hurried,
    so each step is made as soon as it has answered for the pods so far, and ends are deletions.

    Of a run's folder or its events.jsonl: the same scenario, seed and policy once more, and whether every byte of the
    log is the same; if not, the first line that differs, and exit code 1.
    """
    from bayplan.cli.simulate.again import log_at, run_again
    from bayplan.service.lifecycle import run

    if (log := log_at(file)) is not None:
        return run_again(invocation, ctx, log, flags)
    if flags["scenario"] or flags["twin_file"]:
        raise click.UsageError(f"{file} is no log of a run: expected neither --scenario nor --twin")
    if flags["engine"] == "lab" and flags["policy"] != "default":
        raise click.UsageError("the lab runs kube-scheduler: expected --scheduler-config, not --policy")
    if flags["engine"] == "lab" and flags["nodes"]:
        raise click.UsageError("kube-scheduler knows no shares of GPUs, as traces have them: expected no --engine lab")
    if file.suffix == ".csv" and not flags["nodes"]:
        raise click.UsageError("a trace has its nodes in another file: add --nodes CSV")
    story = _recorded(file) if flags["nodes"] is None else _traced(flags["nodes"], file)
    found: list[Outcome] = []

    async def main(service: Service) -> None:
        with _progress(story) as reached:
            work = _on_lab if flags["engine"] == "lab" else _embedded
            found.append(await work(story, flags, lambda: service.stopping, reached))

    code = run("replay", invocation.quiet_settings(), main, endpoint=False, finite=True)
    if found:
        _print(file, story, found[0], flags)
    return code


def _recorded(file: Path) -> Story:
    from bayplan.simulate.recording.file import Recording
    from bayplan.simulate.recording.story import story_of

    recording = Recording(file)
    story = story_of(recording.entries(), recording.began)
    if not story.whole:
        tell(f"Warning: {file} ends before all was read that was there when it began")
    elif recording.cut:
        tell(f"Warning: {file} was cut short; it is replayed as far as it goes")
    return story


def _traced(nodes: Path, pods: Path) -> Story:
    from bayplan.model.clock import VirtualClock
    from bayplan.simulate.openb.story import trace_story
    from bayplan.simulate.openb.trace import read_trace

    return trace_story(read_trace(nodes, pods, timed=True), VirtualClock().now())


async def _embedded(
    story: Story, flags: Doc, stopping: Callable[[], bool], reached: Callable[[Instant], None]
) -> Outcome:
    from bayplan.cluster.embedded.scheduler_file import load_configuration
    from bayplan.simulate.recording.replay import EmbeddedReplay, policy_of

    given, seed = flags["scheduler_config"], flags["seed"]
    scheduler = policy_of(flags["policy"], story, seed) if given is None else load_configuration(given)
    run = EmbeddedReplay(story, scheduler, keep_placed=flags["keep_placed"], seed=seed)
    return await run.run(stopping=stopping, reached=reached)


async def _on_lab(
    story: Story, flags: Doc, stopping: Callable[[], bool], reached: Callable[[Instant], None]
) -> Outcome:
    from bayplan.cluster.lab.lab import Lab, LabOptions
    from bayplan.cluster.live.cluster import LiveCluster
    from bayplan.cluster.live.config import find_access
    from bayplan.service.yaml_lines import read_yaml
    from bayplan.simulate.recording.live import LiveReplay

    def started() -> Lab:
        given: Path | None = flags["scheduler_config"]
        config = None if given is None else read_yaml(str(given), given.read_bytes()).value
        return Lab(LabOptions(scheduler_config=config), name="replay", tell=tell).__enter__()

    lab = await asyncio.to_thread(started)
    try:
        async with LiveCluster(find_access(lab.kubeconfig)) as cluster:
            run = LiveReplay(story, cluster, keep_placed=flags["keep_placed"])
            return await run.run(stopping=stopping, reached=reached)
    finally:
        await asyncio.to_thread(lab.close)


@contextlib.contextmanager
def _progress(story: Story) -> Iterator[Callable[[Instant], None]]:
    from bayplan.cli.progress import progress
    from bayplan.model.clock import SECOND

    done = 0
    with progress("replaying", (story.ended - story.began) // SECOND) as step:

        def reached(at: Instant) -> None:
            nonlocal done
            passed = (at - story.began) // SECOND
            if passed > done:
                step(passed - done)
                done = passed

        yield reached


def _print(file: Path, story: Story, outcome: Outcome, flags: Doc) -> None:
    from bayplan.cli.printers import document
    from bayplan.simulate.recording.comparison import compared

    found = compared(outcome.pods, story.began, outcome.until, outcome.refusals.total())
    if flags["output"]:
        click.echo(document(_document(found, outcome, flags), flags["output"]), nl=False)
        return
    click.echo(comparison_page(str(file), found, outcome, flags["engine"], _placed_by(flags)), nl=False)
    if outcome.until < story.ended:
        from bayplan.model.clock import rfc3339

        tell(f"ended at {rfc3339(outcome.until)}, before the recording does")


def _placed_by(flags: Doc) -> str:
    return str(flags["scheduler_config"] or flags["policy"])


def comparison_page(name: str, found: Comparison, outcome: Outcome, engine: str, policy: str) -> str:
    """A replay beside its recording, for people."""
    from bayplan.cli.describe.page import Page
    from bayplan.model.clock import SECOND, rfc3339
    from bayplan.service.durations import Duration

    share = found.same_share
    span = Duration((found.ended - found.began) // SECOND * SECOND)
    page = Page(found.ended)
    page.pairs(
        [
            ("Recording", f"{name}: {span} from {rfc3339(found.began)}"),
            ("Engine", engine if engine == "embedded" else f"{engine}, in compressed order"),
            ("Policy", policy),
            ("Pods", str(found.pods)),
            (
                "Same Node",
                "-" if share is None else f"{found.same_node} of {found.both_placed} placed both times ({share:.1%})",
            ),
            ("Not Taken", [f"{number} x {why}" for why, number in outcome.refusals.most_common(5)] or None),
        ]
    )
    rows = [
        ["Placed", *_both(found, lambda side: str(side.placed))],
        ["Never Placed", *_both(found, lambda side: str(side.never_placed))],
        ["Mean Wait", *_both(found, lambda side: _seconds(side.mean_wait))],
        ["Longest Wait", *_both(found, lambda side: _seconds(side.longest_wait))],
        ["Mean Pending", *_both(found, lambda side: f"{side.mean_pending:.2f}")],
        ["Most Pending", *_both(found, lambda side: str(side.most_pending))],
        ["Pending", *_both(found, lambda side: _curve(side.pending))],
    ]
    page.table("Compared", ["", "Recorded", "Replayed"], rows)
    return page.text()


def _both(found: Comparison, tell_of: Callable[[Account], str]) -> tuple[str, str]:
    return tell_of(found.recorded), tell_of(found.replayed)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}s"


def _curve(values: tuple[int, ...]) -> str:
    """A line of blocks, a third of the points, the highest of each three."""
    bars = " ▁▂▃▄▅▆▇█"
    most = max(values, default=0) or 1
    peaks = [max(values[at : at + 3]) for at in range(0, len(values), 3)]
    return "|" + "".join(bars[-(-value * (len(bars) - 1) // most)] for value in peaks) + "|"


def _document(found: Comparison, outcome: Outcome, flags: Doc) -> Doc:
    import msgspec

    from bayplan.model.clock import rfc3339_micro

    def time(at: Instant | None) -> str | None:
        return None if at is None else rfc3339_micro(at)

    return {
        "kind": "Replay",
        "engine": flags["engine"],
        "policy": _placed_by(flags),
        "began": time(found.began),
        "ended": time(found.ended),
        "pods": found.pods,
        "sameNode": found.same_node,
        "bothPlaced": found.both_placed,
        "refused": dict(outcome.refusals),
        "recorded": msgspec.to_builtins(found.recorded),
        "replayed": msgspec.to_builtins(found.replayed),
        "placements": [
            {
                "pod": each.name,
                "arrived": time(each.arrived),
                "recordedNode": each.recorded.node,
                "recordedBound": time(each.recorded.bound),
                "replayedNode": each.replayed.node,
                "replayedBound": time(each.replayed.bound),
            }
            for each in outcome.pods
        ],
    }
