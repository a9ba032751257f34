"""What keeps pods off a node is kept in words, and read back from them by the one who wrote them."""

from __future__ import annotations

import pytest

from tests.ledger.books import node


@pytest.mark.parametrize(
    ("ready", "schedulable", "words"),
    [
        pytest.param(True, True, "", id="nothing"),
        pytest.param(False, True, "not ready", id="it is not ready"),
        pytest.param(True, False, "cordoned", id="it is cordoned"),
        pytest.param(False, False, "not ready, cordoned", id="both"),
    ],
)
def test_a_hurdle_says_how_a_node_was(ready: bool, schedulable: bool, words: str) -> None:
    was = node("a", "A100", ready=ready, schedulable=schedulable)
    assert was.hurdle == words
    for later in (node("a", "A100"), node("a", "A100", ready=False, schedulable=False)):
        assert later.with_hurdle(words) == was
