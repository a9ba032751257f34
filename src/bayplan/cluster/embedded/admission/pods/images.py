"""How an image is pulled when nobody said: `Always` for the moving tag `latest`, otherwise `IfNotPresent`.

The tag is the one that distribution/reference finds. An image it cannot parse has no tag, so it is `IfNotPresent`; that
it is no good image is for the kubelet to say.
"""

from __future__ import annotations

import re
from functools import lru_cache

_HOST_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = "sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_reference = re.compile(
    f"(?:{_DOMAIN}/)?(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
).fullmatch
_identifier = re.compile("[a-f0-9]{64}").fullmatch
_LONGEST_PATH = 255


@lru_cache(maxsize=4096)
def default_pull_policy(image: str) -> str:
    """The pull policy of an image that comes without one."""
    match = None if _identifier(image) else _reference(_with_domain(image))
    if match is None or len(match["path"]) > _LONGEST_PATH:
        return "IfNotPresent"
    moving = match["tag"] == "latest" if match["tag"] else match["digest"] is None
    return "Always" if moving else "IfNotPresent"


def _with_domain(image: str) -> str:
    """`redis` in full: `docker.io/library/redis`. A first part with a dot, a colon or a capital is a domain already."""
    first, slash, rest = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    if first in ("docker.io", "index.docker.io"):
        return f"docker.io/{rest}" if "/" in rest else f"docker.io/library/{rest}"
    if first == "localhost" or "." in first or ":" in first or first != first.lower():
        return image
    return f"docker.io/{image}"
