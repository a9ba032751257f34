"""`bayplan simulate record`: what happens on a cluster, into a file that can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayplan.cli.invocation import Invocation
from bayplan.cli.spans import span
from bayplan.cli.targets import Target, on_cluster, tell

if TYPE_CHECKING:
    from bayplan.cluster.live.config import Access
    from bayplan.service.durations import Duration
    from bayplan.service.lifecycle import Service
    from bayplan.simulate.recording.recorder import Progress


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Into it.")
@click.option("--for", "lasts", callback=span, metavar="SPAN", help="End after that time, such as 1h; else on Ctrl-C.")
@on_cluster
@click.pass_obj
def record(invocation: Invocation, target: Target, out: Path, lasts: Duration | None) -> int:
    """Record what happens to pods, nodes and what decisions depend on.

    \b
    bayplan simulate record --context prod --for 1h --out prod.rec
    bayplan simulate replay prod.rec --policy fgd

    It takes the rights to list and to watch, and writes nothing to the cluster. An API server that goes away is waited
    for. However it ends, the file is whole up to then.
    """
    from bayplan.service.lifecycle import run

    access = target.access()

    async def main(service: Service) -> None:
        await _record(service, access, out, lasts)

    return run("record", invocation.quiet_settings(), main, endpoint=False)


async def _record(service: Service, access: Access, out: Path, lasts: Duration | None) -> None:
    import asyncio

    from bayplan.cluster.live.cluster import LiveCluster
    from bayplan.ledger.process import server_time
    from bayplan.ledger.stamping import Stamps
    from bayplan.model.clock import Instant
    from bayplan.simulate.recording.file import Writer
    from bayplan.simulate.recording.recorder import Recorder

    cluster = LiveCluster(access, clock=service.clock)
    service.on_close("cluster", cluster.close)
    stamps = Stamps(lambda: server_time(cluster), service.clock)
    await stamps.begin()
    beside = service.start("server's time", stamps.run())
    with Writer(out, access.server, stamps()) as writer:
        recorder = Recorder(cluster, writer, clock=service.clock, stamp=stamps, synced=_tell_synced)
        work = asyncio.create_task(recorder.run(), name="recorder")
        waits = [work, asyncio.create_task(service.stopped())]
        if lasts is not None:
            end = Instant(service.clock.now() + lasts.micros)
            waits.append(asyncio.create_task(service.clock.sleep_until(end)))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in (*waits, beside):
            each.cancel()
        answers = await asyncio.gather(*waits, return_exceptions=True)
        if isinstance(answers[0], Exception):
            raise answers[0]
        recorder.finish()
        found = recorder.progress
    tell(f"{out}: {found.changes} changes" + ("" if found.synced else "; ended before all was read"))


def _tell_synced(found: Progress) -> None:
    tell("recording: all that is there is known, changes follow")
    if found.lacking:
        tell(f"Warning: lacking the right to list and watch {', '.join(found.lacking)}")
