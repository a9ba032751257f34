"""The picture in plain lines, for a pipe or a log: one that sums up, one for each thing worth telling."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cli.display.picture import Happening, Picture, Waiting
from bayplan.model.ages import human_duration
from bayplan.model.clock import SECOND, Instant, rfc3339, seconds
from bayplan.simulate.tally import Usage

_DAY = 86_400 * SECOND
_PHASES = ("Running", "Pending", "Succeeded", "Failed")


def clock_text(at: Instant) -> str:
    """`09:42:10`."""
    return rfc3339(at)[11:19]


def percent(part: float, whole: float) -> str:
    """`84%`."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def amount(gpus: float) -> str:
    """`12` or `12.5`."""
    return f"{gpus:.2f}".rstrip("0").rstrip(".")


def summary_line(picture: Picture) -> str:
    """The cluster in one line."""
    ready = sum(node.is_ready for node in picture.nodes)
    phases = "  ".join(f"{phase.lower()} {picture.phases.get(phase, 0)}" for phase in _PHASES)
    return (
        f"{clock_text(picture.at)}  nodes {ready}/{len(picture.nodes)}  "
        f"gpus {amount(picture.held)}/{picture.gpus} ({percent(picture.held, picture.gpus)})  {phases}"
    )


def happening_line(happening: Happening) -> str:
    """One thing worth telling."""
    kind = "Warning" if happening.warning else "Normal"
    times = f" (x{happening.count})" if happening.count > 1 else ""
    head = f"{clock_text(happening.at)}  {kind:7}  {happening.reason}  {happening.about}: "
    return head + happening.message.replace("\n", " ") + times


def coming_text(at: Instant | None, what: str, now: Instant) -> str:
    """`10:20 outage of a100-a-2 for 35m`; with the days until then where it is not today."""
    if at is None:
        return what
    days = (at // _DAY) - (now // _DAY)
    return f"{'+' + str(days) + 'd ' if days else ''}{clock_text(at)[:5]} {what}"


def waiting_line(one: Waiting, now: Instant) -> str:
    """Why a pod waits."""
    return f"{clock_text(now)}  Waiting  {one.pod}: {one.why}"


def usage_lines(usage: Usage, speed: str, refusals: Mapping[str, int], events: Mapping[str, int]) -> list[str]:
    """How it went, at the end."""
    total = sum(usage.gpu_hours.values()) + usage.idle_gpu_hours
    lines = [
        f"{human_duration(usage.span)} of cluster time{speed}",
        f"pods      created {usage.created}  succeeded {usage.succeeded}  failed {usage.failed}  "
        f"running {usage.running}  pending {usage.pending}",
        f"wait      {_waits(usage)}",
    ]
    if total:
        lines.append(
            f"gpu-hours {total:.1f}: allocated {total - usage.idle_gpu_hours:.1f} "
            f"({percent(total - usage.idle_gpu_hours, total)})  idle {usage.idle_gpu_hours:.1f}"
        )
    held = [(name, hours) for name, hours in usage.gpu_hours.items() if hours]
    width = max((len(name) for name, _ in held), default=0)
    lines += [f"  {name:{width}}  {hours:8.1f}  {percent(hours, total):>4}" for name, hours in held]
    if events:
        lines.append(
            "events    " + ", ".join(f"{name} x{count}" if count > 1 else name for name, count in events.items())
        )
    if refusals:
        lines.append("refused   " + ", ".join(f"{what} x{count}" for what, count in sorted(refusals.items())))
    return lines


def _waits(usage: Usage) -> str:
    if usage.median_wait is None or usage.longest_wait is None:
        return "no pod was placed"
    median, longest = (human_duration(seconds(wait)) for wait in (usage.median_wait, usage.longest_wait))
    return f"median {median}  longest {longest}  over {usage.waits} placed pods"
