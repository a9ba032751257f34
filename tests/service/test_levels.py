"""Levels by room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.service.levels import DEBUG, INFO, LEVELS, TRACE, WARNING, Levels


@pytest.mark.parametrize(
    ("text", "room", "level"),
    [
        pytest.param("debug", "ledger", DEBUG, id="a bare level is for every room"),
        pytest.param("node.gpu=trace,ledger=debug", "node.gpu", TRACE, id="a room has its own level"),
        pytest.param("node.gpu=trace,ledger=debug", "cluster", INFO, id="the others stay at info"),
        pytest.param("node=debug", "node.gpu.shares", DEBUG, id="a room's level covers what lies below"),
        pytest.param("node=debug", "nodes", INFO, id="a name that only begins alike is another room"),
        pytest.param("node=debug,node.gpu=warning", "node.gpu", WARNING, id="the longest name wins"),
        pytest.param(" ledger=debug , warning ", "cluster", WARNING, id="blanks around items do not matter"),
    ],
)
def test_the_level_of_a_room(text: str, room: str, level: int) -> None:
    assert Levels.parse(text).of(room) == level


@pytest.mark.parametrize(
    "text",
    ["", "loud", "node=", "=debug", "node=loud", "node debug", "node=debug,node=info", "info,debug", "a..b=info"],
)
def test_what_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected .*; got "):
        Levels.parse(text)


_LEVEL = st.sampled_from(sorted(LEVELS.values()))
_ROOM = st.from_regex(r"[a-z_]{1,5}(\.[a-z]{1,5}){0,2}", fullmatch=True)


@given(_LEVEL, st.dictionaries(_ROOM, _LEVEL, max_size=4))
def test_levels_read_back_as_themselves(default: int, rooms: dict[str, int]) -> None:
    levels = Levels(default, rooms)
    assert Levels.parse(str(levels)) == levels
    assert levels.lowest() <= min(levels.of(room) for room in [*rooms, "another"])
