"""A Prometheus, or whatever speaks its HTTP API (Thanos, Mimir, VictoriaMetrics): one question, one answer.

Values are asked for at times that are multiples of the interval, so asking again for the same time says the same.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx2
import msgspec

import bayplan
from bayplan.cluster.live.faults import Untrusted, broken
from bayplan.cluster.salvage import UNREADABLE
from bayplan.ledger.use.exporters import UseSettingsError
from bayplan.ledger.use.reading import Series
from bayplan.model.clock import SECOND
from bayplan.model.errors import PermanentError, TemporaryError

_CONNECT = 5.0
_ANSWER = 30.0
"""Seconds. Prometheus is told the second one, and gives up by then itself."""
_BUSY = 429
_SHOWN = 200


class PrometheusAwayError(TemporaryError):
    """Prometheus cannot be reached, or does not answer at the moment."""

    code = "BP-D050"


class PrometheusRefusedError(PermanentError):
    """Prometheus refuses: the query, the token, or its answer is none."""

    code = "BP-D051"


class Where(msgspec.Struct, frozen=True):
    """How a Prometheus is reached."""

    url: str
    token_file: str = ""
    """Read anew for each question: tokens are renewed."""
    authority: str = ""
    """A file with the authorities that may sign its certificate; empty: the machine's."""


class _Data(msgspec.Struct, frozen=True):
    result: list[Series]


class _Answer(msgspec.Struct, frozen=True):
    status: str
    error: str = ""
    data: _Data | None = None


_READ = msgspec.json.Decoder(_Answer)


class Prometheus:
    """The way to one Prometheus."""

    def __init__(self, where: Where) -> None:
        """Raises UseSettingsError for a URL or an authority that cannot be used."""
        try:
            parts, host = urlsplit(where.url), httpx2.URL(where.url).host
        except (ValueError, httpx2.InvalidURL):
            parts, host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not host:
            given = re.sub(r"(?s)^(\w+://)?.*@", r"\1***@", where.url)  # a URL that is none may hold a password too
            raise UseSettingsError(f'ledger.prometheus: expected a URL, as http://HOST:9090; got "{given}"')
        self.shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        """Its address without a password."""
        self._token_file = where.token_file
        self._endpoint = where.url.rstrip("/") + "/api/v1/query_range"
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(verify=_trusting(where.authority), trust_env=False),
            trust_env=False,
            headers={"User-Agent": f"bayplan/{bayplan.__version__}"},
            timeout=httpx2.Timeout(_ANSWER, connect=_CONNECT),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def values(self, query: str, times: range, oldest: int) -> list[Series]:
        """What a query gives at each of these instants, from values that are at most `oldest` microseconds old.

        (A Prometheus before 2.44 goes by its own setting, five minutes, where scrapes end without a word.)
        Raises PrometheusAwayError, PrometheusRefusedError.
        """
        wanted = {
            "query": query,
            "start": _seconds(times[0]),
            "end": _seconds(times[-1]),
            "step": _seconds(times.step),
            "timeout": f"{_ANSWER:.0f}s",
            "lookback_delta": _seconds(oldest),
        }
        try:
            response = await self._http.get(self._endpoint, params=wanted, headers=self._authorization())
        except httpx2.HTTPError as error:
            fault = broken(error, self.shown)
            if isinstance(fault, Untrusted):
                raise PrometheusRefusedError(fault.message, hint="name its CA: ledger.prometheus_authority") from error
            raise PrometheusAwayError(fault.message, hint="check ledger.prometheus, and that it runs") from error
        return self._read(response)

    def _read(self, response: httpx2.Response) -> list[Series]:
        try:
            answer = _READ.decode(response.content)
        except UNREADABLE:
            answer = _Answer("", " ".join(response.text[:_SHOWN].split()))
        if response.is_success and answer.status == "success" and answer.data is not None:
            return answer.data.result
        told = f"{self.shown}: answered {response.status_code}: {answer.error or 'not as Prometheus does'}"
        if response.is_server_error or response.status_code == _BUSY:
            raise PrometheusAwayError(told)
        hints = {
            401: "name a file with a token: ledger.prometheus_bearer",
            403: "the token's account may not ask: ledger.prometheus_bearer",
            404: "check the path of ledger.prometheus: /api/v1/query_range is added to it",
        }
        raise PrometheusRefusedError(told, hint=hints.get(response.status_code, "check the query and the URL"))

    def _authorization(self) -> dict[str, str]:
        if not self._token_file:
            return {}
        try:
            token = Path(self._token_file).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PrometheusRefusedError(
                f"{self._token_file}: no token can be read ({error})", hint="check ledger.prometheus_bearer"
            ) from error
        return {"Authorization": f"Bearer {token}"}


def _seconds(micros: int) -> str:
    return f"{micros / SECOND:.3f}"


def _trusting(authority: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not authority:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise UseSettingsError(f"ledger.prometheus_authority: {authority} cannot be used ({error})") from error
    return context
