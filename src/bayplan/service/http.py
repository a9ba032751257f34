"""What every HTTP server in the house shares: how it listens, and that signals are none of its business.

uvicorn is imported when a server starts, not before.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

from bayplan.model.errors import PermanentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import uvicorn


class AddressUnavailable(PermanentError):
    """An address cannot be listened on."""

    code = "BP-S002"


def listen(bind: str, port: int, *, what: str, hint: str) -> socket.socket:
    """A listening socket: clients may connect, and wait until the loop turns. Raises AddressUnavailable."""
    # named as TCP, not left at 0: only then does asyncio switch off Nagle's delay, which costs 40 ms an answer
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bind, port))
        listener.listen(1024)
    except OSError as refused:
        listener.close()
        raise AddressUnavailable(f"{what}: cannot listen on {bind}:{port}: {refused.strerror}", hint=hint) from refused
    return listener


def new_server(
    app: Any, *, certificate: Path | None = None, key: Path | None = None, dated: bool = True
) -> uvicorn.Server:
    """A server for an ASGI application, over TLS when it is given a certificate.

    With `dated=False` the application says itself what time it is.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # lifecycle.py alone handles signals

    return Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=dated,
            timeout_graceful_shutdown=1,
            ssl_certfile=str(certificate) if certificate else None,
            ssl_keyfile=str(key) if key else None,
        )
    )
