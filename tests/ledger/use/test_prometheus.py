"""The way to a Prometheus: what is asked, what is sent along, and what each refusal is told as."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bayplan.ledger.use.exporters import UseSettingsError
from bayplan.ledger.use.prometheus import Prometheus, PrometheusAwayError, PrometheusRefusedError, Where
from bayplan.ledger.use.reading import Series
from bayplan.model.clock import SECOND
from bayplan.model.errors import BayplanError
from tests.ledger.use.web import serving

TIMES = range(1_767_225_600 * SECOND, 1_767_225_720 * SECOND + 1, 60 * SECOND)
ONE = (
    '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"p"},"values":[[1767225600,"NaN"],'
    '[1767225660.5,"1"]]},{"metric":{},"histograms":[]}]},"warnings":["later versions say more"]}'
)
BAD = '{"status":"error","errorType":"bad_data","error":"parse error: unexpected end of input"}'


async def ask(where: Where) -> list[Series]:
    prometheus = Prometheus(where)
    try:
        return await prometheus.values("up or down", TIMES, 120 * SECOND)
    finally:
        await prometheus.close()


async def test_what_is_asked_and_what_comes_back(tmp_path: Path) -> None:
    asked: list[BaseHTTPRequestHandler] = []

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, str]:
        asked.append(request)
        return 200, ONE

    (tmp_path / "token").write_text("s3cret\n")
    with serving(answer) as url:
        found = await ask(Where(f"{url}/prefix/", str(tmp_path / "token")))
    assert found == [Series({"pod": "p"}, [(1767225600, "NaN"), (1767225660.5, "1")]), Series({})]
    assert asked[0].headers["Authorization"] == "Bearer s3cret"
    path = urlsplit(asked[0].path)
    assert path.path == "/prefix/api/v1/query_range"
    assert {name: value for name, [value] in parse_qs(path.query).items()} == {
        "query": "up or down",
        "start": "1767225600.000",
        "end": "1767225720.000",
        "step": "60.000",
        "lookback_delta": "120.000",
        "timeout": "30s",
    }


@pytest.mark.parametrize(
    ("status", "text", "error", "message"),
    [
        pytest.param(400, BAD, PrometheusRefusedError, "answered 400: parse error", id="a query that cannot be read"),
        pytest.param(401, "", PrometheusRefusedError, "ledger.prometheus_bearer", id="no token"),
        pytest.param(403, "no", PrometheusRefusedError, "answered 403: no", id="a token without rights"),
        pytest.param(404, "<html>", PrometheusRefusedError, "check the path", id="a wrong path"),
        pytest.param(200, "<html>hello", PrometheusRefusedError, "answered 200: <html>hello", id="another website"),
        pytest.param(200, '{"status":"success"}', PrometheusRefusedError, "not as Prometheus does", id="no data"),
        pytest.param(200, ONE.replace('"p"', '"\udcff"'), PrometheusRefusedError, "answered 200: {", id="no UTF-8"),
        pytest.param(302, "", PrometheusRefusedError, "answered 302", id="a page to log in at"),
        pytest.param(429, "", PrometheusAwayError, "answered 429", id="too many questions"),
        pytest.param(503, BAD, PrometheusAwayError, "answered 503", id="overloaded"),
    ],
)
async def test_a_refusal_is_told_in_its_own_words(
    status: int, text: str, error: type[BayplanError], message: str
) -> None:
    with serving(lambda _: (status, text)) as url, pytest.raises(error) as told:
        await ask(Where(url))
    assert message in str(told.value)


async def test_who_is_away_is_told_so_without_the_password() -> None:
    with pytest.raises(PrometheusAwayError) as told:
        await ask(Where("http://me:s3cret@127.0.0.1:1"))
    assert told.value.message == "http://127.0.0.1:1: connection refused"


async def test_a_token_that_is_not_there_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(PrometheusRefusedError, match="no token can be read"):
        await ask(Where("http://127.0.0.1:1", str(tmp_path / "none")))


async def test_a_token_that_no_header_can_carry_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s\u00e9cret\n", encoding="utf-8")
    with pytest.raises(PrometheusRefusedError, match="no token can be read"):
        await ask(Where("http://127.0.0.1:1", str(tmp_path / "token")))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("prometheus:9090", "prometheus:9090", id="no scheme"),
        pytest.param("ftp://host", "ftp://host", id="another scheme"),
        pytest.param("http://", "http://", id="no host"),
        pytest.param("somewhere", "somewhere", id="a word"),
        pytest.param("http://127.0.0.1:abc", "http://127.0.0.1:abc", id="a port that is no number"),
        pytest.param("http://[::1", "http://[::1", id="half an address"),
        pytest.param("http://me:s3cret@[::1", "http://***@[::1", id="half an address, with a password"),
        pytest.param("http://me:s3/c@ret@host:9090", "http://***@host:9090", id="a password that is not escaped"),
        pytest.param("me:s3cret@host:9090", "***@host:9090", id="a password without a scheme"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, shown: str) -> None:
    with pytest.raises(UseSettingsError) as told:
        Prometheus(Where(url))
    assert told.value.message == f'ledger.prometheus: expected a URL, as http://HOST:9090; got "{shown}"'


def test_an_authority_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    for name in ("ca", "missing"):
        with pytest.raises(UseSettingsError, match="cannot be used"):
            Prometheus(Where("https://host", authority=str(tmp_path / name)))
