"""Resources as settings."""

from __future__ import annotations

import pytest

from bayplan.service.resource_patterns import ResourcePatterns
from bayplan.service.sources import Given, load


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("none", ()),
        ("rebellions.ai/ATOM", ("rebellions.ai/ATOM",)),
        ("example.com/npu-*, furiosa.ai/rngd", ("example.com/npu-*", "furiosa.ai/rngd")),
    ],
)
def test_resources_are_read(text: str, patterns: tuple[str, ...]) -> None:
    found = ResourcePatterns.parse(text)
    assert found == ResourcePatterns(*patterns)
    assert ResourcePatterns.parse(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("cpu", id="a resource without a domain"),
        pytest.param("*.ai/ATOM", id="a pattern in the domain"),
        pytest.param("*", id="everything"),
        pytest.param("rebellions.ai/", id="a domain alone"),
        pytest.param("rebellions.ai/-", id="a name without a letter"),
        pytest.param("a.ai/x,a.ai/x", id="one twice"),
        pytest.param("a.ai/x,", id="nothing after a comma"),
        pytest.param("a.ai/x/y", id="two slashes"),
        pytest.param("none,a.ai/x", id="none and one"),
        pytest.param("node.kubernetes.io/x", id="a name of Kubernetes itself"),
    ],
)
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected extended resources as DOMAIN/NAME, each once"):
        ResourcePatterns.parse(text)


def test_a_setting_of_resources() -> None:
    resolved = load(flags=[Given("ledger.gpu_resources", "rebellions.ai/ATOM", "--set")], env={})
    assert resolved.settings.ledger.gpu_resources.patterns == ("rebellions.ai/ATOM",)
