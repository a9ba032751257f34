"""What measuring a document costs: most of it are scalars, and nothing is kept of them."""

from __future__ import annotations

import pytest
import yaml

from bayplan.service.yaml_lines import _measure


@pytest.mark.parametrize(
    ("text", "size", "depth", "kept"),
    [
        pytest.param("a", 1, 0, 1, id="a scalar"),
        pytest.param("a: [1, 2, {b: c}]", 8, 3, 3, id="scalars in lists and mappings"),
        pytest.param("- &a 1\n- *a\n- &b [1]\n- *b", 7, 2, 2, id="aliases"),
    ],
)
def test_only_what_holds_others_is_kept(text: str, size: int, depth: int, kept: int) -> None:
    known: dict[int, tuple[int, int] | None] = {}
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    assert root is not None
    assert _measure("x.yaml", root, known) == (size, depth)
    assert len(known) == kept
