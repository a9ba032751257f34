"""A log of bursts: all of them for whoever asks, a line a minute for everybody."""

from __future__ import annotations

from bayplan.agent.burst import Happening
from bayplan.agent.burst_news import BurstNews
from bayplan.model.clock import SECOND, Instant


class Lines:
    def __init__(self) -> None:
        self.debugged: list[str] = []
        self.informed: list[dict[str, object]] = []

    def debug(self, event: str, /, **_: object) -> None:
        self.debugged.append(event)

    def info(self, event: str, /, **fields: object) -> None:
        self.informed.append({"event": event, **fields})


def test_a_group_that_always_bursts_is_one_line_a_minute() -> None:
    lines = Lines()
    news = BurstNews(lines)
    for second in range(121):
        for what in ("would burst", "would end"):
            news.tell(Happening(Instant(10**12 + second * SECOND), "/app", what, 1.5, "throttled"))
    assert len(lines.debugged) == 242
    first, second_minute, third = lines.informed
    assert (first["event"], first["would_burst"], first["group"]) == ("bursts", 1, "/app")
    assert (second_minute["would_burst"], second_minute["would_end"], second_minute["groups"]) == (60, 60, 1)
    assert third["would_end"] == 60
