"""A small web server in a thread: an exporter that Prometheus scrapes, or something in Prometheus's place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], tuple[int, str]]
"""Status and text; a lone surrogate such as U+DCFF stands for a byte that is no UTF-8."""


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server on loopback, until the block is left; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answer(self)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode(errors="surrogateescape"))

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
