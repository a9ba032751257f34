"""Quantities agree with upstream, text for text, and behave as numbers do."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.errors import PermanentError
from bayplan.model.quantity import (
    NANOS,
    WRONG_FORMAT,
    WRONG_NUMBER,
    WRONG_SUFFIX,
    Format,
    Quantity,
    QuantityError,
    canonical,
    parse,
)
from tests.model.recorded import recorded

quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(Format))
suffixes = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "E-3", "e6", "e1"])
texts = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,9})?", fullmatch=True),
    suffixes,
)


@pytest.mark.parametrize(
    ("text", "stored", "value", "milli"),
    [
        pytest.param("1e3", "1e3", 1000, 1_000_000, id="an exponent stays an exponent"),
        pytest.param("1e0", "1e0", 1, 1000, id="even an exponent of zero stays"),
        pytest.param("129e6", "129e6", 129_000_000, 129_000_000_000, id="a mantissa before an exponent stays"),
        pytest.param("1e1", "10", 10, 10_000, id="an exponent that is no multiple of three is written out"),
        pytest.param("1000e0", "1e3", 1000, 1_000_000, id="zeros move into the exponent"),
        pytest.param("0.5Gi", "512Mi", 2**29, 2**29 * 1000, id="a binary fraction moves to the next suffix"),
        pytest.param("1.5Gi", "1536Mi", 3 * 2**29, 3 * 2**29 * 1000, id="so does one and a half"),
        pytest.param("1024Mi", "1Gi", 2**30, 2**30 * 1000, id="1024 of a binary suffix are one of the next"),
        pytest.param("528482304Ki", "504Gi", 504 * 2**30, 504 * 2**30 * 1000, id="several suffixes up at once"),
        pytest.param("1.6Gi", "1717986918400m", 1717986919, 1717986918400, id="a binary rest turns decimal"),
        pytest.param("0.5Ki", "512", 512, 512_000, id="a binary value below 1024 turns decimal"),
        pytest.param("0.0001Ki", "102400u", 1, 103, id="a binary value below one turns decimal"),
        pytest.param("100m", "100m", 1, 100, id="a tenth rounds up to one"),
        pytest.param("1000m", "1", 1, 1000, id="a thousand thousandths are one"),
        pytest.param("0.5", "500m", 1, 500, id="a decimal fraction becomes thousandths"),
        pytest.param("1000k", "1M", 10**6, 10**9, id="a thousand of a decimal suffix are one of the next"),
        pytest.param("1u", "1u", 1, 1, id="a millionth rounds up"),
        pytest.param("0.1n", "1n", 1, 1, id="less than a nano is a nano"),
        pytest.param("-0.1n", "-1n", -1, -1, id="and away from zero below it"),
        pytest.param("-1", "-1", -1, -1000, id="negative numbers exist"),
        pytest.param("-1500m", "-1500m", -2, -1500, id="and round away from zero"),
        pytest.param("1E", "1E", 10**18, 10**21, id="a lone E is exa"),
        pytest.param("1E3", "1E3", 1000, 1_000_000, id="an E before digits is an exponent"),
        pytest.param("16Ei", "9223372036854775807", 2**63 - 1, (2**63 - 1) * 1000, id="binary values end at int64"),
        pytest.param(".", "0", 0, 0, id="a dot is zero"),
        pytest.param("-", "0", 0, 0, id="a sign is zero"),
        pytest.param("Ki", "0", 0, 0, id="a suffix is zero"),
        pytest.param("0Gi", "0", 0, 0, id="zero has no suffix"),
        pytest.param("1.234", "1.234", 2, 1234, id="three decimals pass for canonical"),
        pytest.param("+1", "+1", 1, 1000, id="a plus sign passes for canonical"),
        pytest.param("7000E", "7000E", 7 * 10**21, 7 * 10**24, id="beyond exa the number grows"),
    ],
)
def test_reading_and_writing(text: str, stored: str, value: int, milli: int) -> None:
    quantity = parse(text)
    assert (canonical(text), quantity.value(), quantity.milli()) == (stored, value, milli)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", WRONG_FORMAT, id="nothing at all"),
        pytest.param("0x", WRONG_FORMAT, id="a letter that no suffix has"),
        pytest.param(" 1", WRONG_FORMAT, id="a blank"),
        pytest.param("1\n", WRONG_FORMAT, id="a line end"),
        pytest.param("١", WRONG_FORMAT, id="a digit of another script"),
        pytest.param("1.5.5", WRONG_FORMAT, id="two dots"),
        pytest.param("1K", WRONG_SUFFIX, id="a kilo in capitals"),
        pytest.param("1ki", WRONG_SUFFIX, id="a kibi in small letters"),
        pytest.param("1e", WRONG_SUFFIX, id="an exponent without digits"),
        pytest.param("1e5m", WRONG_FORMAT, id="an exponent and a suffix"),
        pytest.param("1e99999999999999999999", WRONG_SUFFIX, id="an exponent beyond int64"),
        pytest.param("e-10", WRONG_NUMBER, id="an exponent alone, below a nano"),
        pytest.param("1e2000000000", WRONG_NUMBER, id="a number too long to hold"),
        pytest.param("9" * 5000, WRONG_NUMBER, id="a text too long to hold"),
    ],
)
def test_refusals_are_in_the_words_of_the_api_server(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse(text)
    assert refused.value.message == message
    assert isinstance(refused.value, PermanentError)
    assert isinstance(refused.value, ValueError)


def test_a_vanishing_number_costs_nothing() -> None:
    assert parse("1e-2000000000") == Quantity(1)
    assert parse("0e2000000000") == Quantity(0)


def test_every_recorded_text_is_read_as_upstream_reads_it() -> None:
    last = parse("1")
    for case in recorded("quantity"):
        text = case["text"]
        if "error" in case:
            with pytest.raises(QuantityError) as refused:
                parse(text)
            assert refused.value.message == case["error"], text
            continue
        quantity = parse(text)
        assert quantity.format.value == case["format"], text
        assert (quantity > last) - (quantity < last) == case["cmp"], text
        last = quantity
        if abs(quantity.nanos) < 10**30:
            assert (canonical(text), str(quantity)) == (case["string"], case["canonical"])
        if quantity.nanos >= 0 and quantity.value() < 2**63:
            assert quantity.value() == case["value"], text
        if quantity.nanos >= 0 and quantity.milli() < 2**63:
            assert quantity.milli() == case["milli"], text


@given(quantities)
def test_what_is_written_reads_back_the_same(quantity: Quantity) -> None:
    if quantity.format is not Format.BINARY_SI or abs(quantity.nanos) < 2**63 * NANOS:
        assert parse(str(quantity)) == quantity


@given(texts)
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)
    assert parse(canonical(text)) == parse(text)
    assert canonical(str(parse(text))) == str(parse(text))


@given(quantities, quantities)
def test_order_and_sums_agree_with_fractions(a: Quantity, b: Quantity) -> None:
    left, right = Fraction(a.nanos, NANOS), Fraction(b.nanos, NANOS)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        left < right,
        left <= right,
        left == right,
        left >= right,
        left > right,
    )
    assert Fraction((a + b).nanos, NANOS) == left + right
    assert Fraction((a - b).nanos, NANOS) == left - right
    assert Fraction((3 * a).nanos, NANOS) == 3 * left
    assert -a + a == Quantity()


@given(quantities)
def test_rounding_goes_away_from_zero_and_never_by_a_whole_step(quantity: Quantity) -> None:
    for rounded, step in ((quantity.value(), NANOS), (quantity.milli(), NANOS // 1000)):
        assert 0 <= abs(rounded * step) - abs(quantity.nanos) < step


def test_a_sum_keeps_the_form_of_its_first_part_that_is_not_zero() -> None:
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("1Gi") + parse("1000")) == "1073742824"
    assert str(parse("1G") - parse("1Gi")) == "-73741824"


def test_equal_amounts_are_one_key_whatever_their_form() -> None:
    assert len({parse("1Ki"), parse("1024"), parse("1.024e3")}) == 1
    assert parse("1") != "1"
    assert (bool(parse("0Gi")), bool(parse("1n"))) == (False, True)


def test_quantities_are_made_from_numbers() -> None:
    assert str(Quantity.whole(2048, Format.BINARY_SI)) == "2Ki"
    assert str(Quantity.of_milli(1500)) == "1500m"
