"""News of the keeper to an agent that does not read: nothing waits, nothing is lost, lines stay whole."""

from __future__ import annotations

import os

from bayplan.agent.keeper import TOLD, Outbox, Told


def test_what_nobody_reads_is_kept_and_comes_whole() -> None:
    reading, writing = os.pipe()
    outbox = Outbox(writing)
    news = [Told("released", f"/app/{number}", late_us=number) for number in range(5000)]  # more than a pipe holds
    for each in news:
        outbox.tell([each])
    assert outbox.waiting == [writing]
    text = b""
    while outbox.waiting:
        text += os.read(reading, 1 << 16)
        outbox.tell()
    os.close(writing)
    while chunk := os.read(reading, 1 << 16):
        text += chunk
    os.close(reading)
    assert [TOLD.decode(line) for line in text.splitlines()] == news


def test_a_reader_that_is_gone_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    outbox = Outbox(writing)
    outbox.tell([Told("released", "/app")])
    assert outbox.waiting == []
    os.close(writing)
