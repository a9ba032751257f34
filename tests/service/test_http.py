"""How the house listens."""

from __future__ import annotations

import socket

import pytest

from bayplan.service.http import AddressUnavailable, listen


def test_answers_are_not_held_back() -> None:
    """asyncio switches off Nagle's delay on sockets that say they are TCP, and on no others."""
    with listen("127.0.0.1", 0, what="a test", hint="none") as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_taken_port_is_refused_with_the_way_out() -> None:
    with listen("127.0.0.1", 0, what="a test", hint="none") as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AddressUnavailable, match=f"a test: cannot listen on 127.0.0.1:{port}"):
            listen("127.0.0.1", port, what="a test", hint="none")
