"""`tellings`: every story that this session asks for, told on both engines, as many at a time as two cores bear."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from tests.stories.compare import differences
from tests.stories.engines import embedded, lab
from tests.stories.report import report
from tests.stories.run import Judge, Seen, Telling
from tests.stories.story import Story, stories

PAGE = Path(__file__).parents[2] / "docs" / "stories.md"
_AT_A_TIME = 10  # tellings mostly wait

Tellings = dict[str, tuple[Future[list[Seen]], Future[list[Seen]]]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-stories", action="store_true", help="write docs/stories.md from this run")


@pytest.fixture(scope="session")
def tellings(request: pytest.FixtureRequest) -> Iterator[Tellings]:
    """By story, what the lab will have told and what the embedded engine will have."""
    wanted = {item.callspec.id for item in request.session.items if hasattr(item, "callspec")}
    chosen = [story for name, story in stories().items() if name in wanted]
    with ExitStack() as stack:
        try:
            real = stack.enter_context(lab())
        except LabUnavailableError as error:
            pytest.skip(f"no lab here: {error.message}")
        ours = stack.enter_context(embedded())
        pool = stack.enter_context(ThreadPoolExecutor(_AT_A_TIME))
        running: Tellings = {}
        for story in sorted(chosen, key=_patience, reverse=True):
            second = pool.submit(Telling(ours, story).run)
            first = pool.submit(Telling(real, story, _as_told(story, second)).run)
            running[story.name] = (first, second)
        yield running
        if request.config.getoption("--update-stories", default=False):
            told = [(story, running[story.name][0].result(), running[story.name][1].result()) for story in chosen]
            PAGE.write_text(report(told))


def _as_told(story: Story, embedded: Future[list[Seen]]) -> Judge:
    """Whether the lab has come to what the embedded engine told, or to what is known to differ."""

    def agrees(number: int, seen: Seen) -> bool:
        found = differences(story, number, seen, embedded.result()[number - 1])
        return all(each.known is not None for each in found)

    return agrees


def _patience(story: Story) -> float:
    """The slow ones begin first."""
    return max(step.within for step in story.steps)
