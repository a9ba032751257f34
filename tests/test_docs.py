"""The documentation cannot rot: codes, links, paths, commands and snippets are those that exist."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.cli.main import VERBS
from bayplan.cluster.embedded.assembly import standard_controllers
from bayplan.conformance.frame import FAMILIES
from bayplan.model.errors import BayplanError, TemporaryError

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("designs/*.md"), *ROOT.glob("examples/**/*.md")]
)
SOURCES = sorted((ROOT / "src").rglob("*.py"))

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"\b((?:benchmarks|designs|docs|examples|src|tests|tools)/[\w./-]*\w/?)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_HEADING = re.compile(r"^#+ (.+)$", re.M)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = _FENCE.sub("", page.read_text())
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in _HEADING.findall(prose)}


def _blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in _FENCE.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(place), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    for path in _PATH.findall(re.sub(r"https?://\S+", "", page.read_text())):
        assert (ROOT / path).exists(), path


def test_every_page_that_the_source_refers_to_exists() -> None:
    named = {path for source in SOURCES for path in re.findall(r"\b(?:docs|designs)/[\w-]+\.md", source.read_text())}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_index_lists_every_page() -> None:
    listed = set(_LINK.findall((ROOT / "docs/index.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"} <= listed


def _errors() -> Iterator[type[BayplanError]]:
    """Every error class with a code of its own, wherever it is defined."""
    for module in pkgutil.walk_packages(bayplan.__path__, "bayplan."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:  # Alembic runs those
            importlib.import_module(module.name)
    waiting: list[type[BayplanError]] = [BayplanError]
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        if "code" in vars(one) and one.__module__.startswith("bayplan."):
            yield one


def test_errors_lists_all_codes_and_no_others() -> None:
    rows = re.findall(r"^\| `(BP-\w+)` \| `(\w+)` \| (yes|no|) ?\|", (ROOT / "docs/errors.md").read_text(), re.M)

    known = {one.code: one for one in _errors()}

    assert sorted((code, name) for code, name, _ in rows) == sorted((code, one.__name__) for code, one in known.items())
    for code, _, again in rows[1:]:
        assert again == ("yes" if issubclass(known[code], TemporaryError) else "no"), code


def test_no_two_errors_share_a_code() -> None:
    codes = [one.code for one in set(_errors())]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", page.read_text(), re.M))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_verb_that_is_named_exists(page: Path) -> None:
    fenced = "\n".join(body for kind, body in _FENCE.findall(page.read_text()) if not kind)
    named = re.findall(r"`bayplan ([a-z]+)", page.read_text()) + re.findall(r"^(?:\$ )?bayplan ([a-z]+)", fenced, re.M)
    assert set(named) <= VERBS.keys()


def test_the_readme_shows_every_verb() -> None:
    text = (ROOT / "README.md").read_text()
    assert [verb for verb in VERBS if not re.search(rf"bayplan {verb}\b|`{verb}`", text)] == []


def test_every_family_is_described() -> None:
    rows = re.findall(r"^\| `([\w/-]+)` \|", (ROOT / "docs/conformance.md").read_text(), re.M)
    assert sorted(rows) == sorted(FAMILIES)


def test_controllers_that_are_said_to_be_missing_are_missing() -> None:
    said = re.search(r"Not: ([^|]+?) \|", (ROOT / "docs/embedded-differences.md").read_text())
    assert said is not None
    running = {type(one).__name__ for one in standard_controllers()}
    assert [name for name in said[1].split(", ") if any(one.startswith(name) for one in running)] == []


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(body, id=f"{_name(page)} {number}")
        for page in PAGES
        for number, body in enumerate(_blocks(page, "python"), start=1)
        if "asyncio.run(" in body
    ],
)
def test_a_snippet_that_is_a_whole_program_runs(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(snippet, "snippet", "exec"), namespace)
    assert capsys.readouterr().out
