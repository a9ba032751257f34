"""Writes docs/ledger-log.md from ledger/events.py: `python -m tests.ledger.log_page`. A test compares."""

from __future__ import annotations

from pathlib import Path

from bayplan.ledger.events import FIELDS, TOPICS

PAGE = Path(__file__).parents[2] / "docs" / "ledger-log.md"

_HEAD = """\
# What the ledger logs

Written from `src/bayplan/ledger/events.py`; a test keeps this page and every call in the source in step with it. Names
and fields are stable: alerts may rest on them. How lines look and how levels are set is in [logging](logging.md).

```
{"ts":"2026-01-01T00:00:00.000000Z","level":"info","logger":"ledger.outlet","msg":"spool replayed","batches":12}
```

`BAYPLAN_LOG=ledger=debug,cluster.leases=debug` adds a line for each decision, with the object's uid and
resourceVersion:

```
{... "msg":"change taken","type":"MODIFIED","kind":"Pod","uid":"6f1c...","resource_version":4711}
{... "msg":"row made","table":"gpu_pods_events","uid":"6f1c...","resource_version":4711}
```

Beside these come the lines that every process has: `health endpoint listens`, `started`, `stopping`, `stopped`,
`failed`.
"""


def rendered() -> str:
    """The page."""
    parts = [_HEAD]
    for topic, events in TOPICS.items():
        parts.append(f"\n## {topic}\n\n| event | level | fields | |\n|---|---|---|---|\n")
        for name, event in events.items():
            fields = ", ".join(f"`{field}`" for field in event.fields.split())
            parts.append(f"| `{name}` | {event.level} | {fields} | {event.meaning} |\n")
    parts.append("\n## Fields\n\n| field | |\n|---|---|\n")
    parts += [f"| `{name}` | {meaning} |\n" for name, meaning in FIELDS.items()]
    return "".join(parts).replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(rendered())
