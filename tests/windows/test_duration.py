from __future__ import annotations

import contextlib
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import WindowError
from muntin.windows import duration, duration_text
from muntin.windows.duration import DAY, HOUR, MINUTE, SECOND, UNITS, WEEK

SPELLINGS = {
    "12 minutes": 12 * MINUTE,
    "12 min": 12 * MINUTE,
    "12min": 12 * MINUTE,
    "12m": 12 * MINUTE,
    "  12   Minutes ": 12 * MINUTE,
    "90s": 90 * SECOND,
    "90 SECONDS": 90 * SECOND,
    "1h30m": 90 * MINUTE,
    "1 hour 30 minutes": 90 * MINUTE,
    "1d12h": 36 * HOUR,
    "500 ms": 500_000,
    "250us": 250,
    "250 \N{MICRO SIGN}s": 250,
    "250 \N{GREEK SMALL LETTER MU}s": 250,
    "3000 ns": 3,
    "1 day": DAY,
    "2 weeks": 2 * WEEK,
    "1.5 hours": 90 * MINUTE,
    "0.5s": 500_000,
    ".5s": 500_000,
    "0 seconds": 0,
    "-5 minutes": -5 * MINUTE,
    "+5 minutes": 5 * MINUTE,
    "INTERVAL '5' MINUTE": 5 * MINUTE,
    "interval '5' minute": 5 * MINUTE,
    "INTERVAL '5 minutes'": 5 * MINUTE,
    "INTERVAL 5 MINUTES": 5 * MINUTE,
    "INTERVAL '-5' MINUTE": -5 * MINUTE,
    "INTERVAL '1 hour 30 minutes'": 90 * MINUTE,
    "INTERVAL 1 HOUR 30 MINUTES": 90 * MINUTE,
    "INTERVAL '1:30' HOUR TO MINUTE": 90 * MINUTE,
    "INTERVAL '1 02:03:04.5' DAY TO SECOND": DAY + 2 * HOUR + 3 * MINUTE + 4_500_000,
    "INTERVAL '1 2' DAY TO HOUR": DAY + 2 * HOUR,
    "INTERVAL '90:30' MINUTE TO SECOND": 90 * MINUTE + 30 * SECOND,
    "PT5M": 5 * MINUTE,
    "PT1H30M": 90 * MINUTE,
    "P1DT2H": 26 * HOUR,
    "P2W": 2 * WEEK,
    "PT0.5S": 500_000,
}

VALUES = [
    (18, 18),
    (-3, -3),
    (np.int32(18), 18),
    (2**63 - 1, 2**63 - 1),
    (timedelta(minutes=12), 12 * MINUTE),
    (timedelta(days=-1, microseconds=5), -DAY + 5),
    (timedelta.max, 86399999999999999999),
    (np.timedelta64(5, "m"), 5 * MINUTE),
    (np.timedelta64(3, "D"), 3 * DAY),
    (np.timedelta64(7, "25s"), 175 * SECOND),
    (np.timedelta64(3000, "ns"), 3),
    (pd.Timedelta("5 minutes"), 5 * MINUTE),
    (pd.Timedelta(3000, "ns"), 3),
]

REFUSED = {
    "": "duration '' is empty",
    "12": "duration '12' has no unit",
    "minutes": "cannot read duration 'minutes'",
    "five minutes": "'five' is not a number",
    "5 minutes ago": "cannot read duration '5 minutes ago'",
    "minutes 5": "'minutes' is not a number",
    "1.2.3 s": "'1.2.3' is not a number",
    "1e3 s": "unknown unit 'e'",
    "1,5 s": "unknown unit ','",
    "1/2 s": "unknown unit '/'",
    "5 minuts": "unknown unit 'minuts'",
    "1 month": "no fixed length in 'month'",
    "INTERVAL '1' YEAR": "no fixed length in 'year'",
    "P1M": "has 'M' where it has no fixed length",
    "P1Y": "has 'Y' where it has no fixed length",
    "P": "is empty",
    "PT": "is empty",
    "-1h30m": "a sign before several quantities",
    "--5 s": "a sign before several quantities",
    "1 s 1 s": "units out of order",
    "30m 1h": "units out of order",
    "1ns": "not a whole number of microseconds",
    "0.0000001 s": "not a whole number of microseconds",
    "300000 years": "no fixed length",
    "107000000 days": "does not fit into 64 bits",
    "9" * 90 + " s": "does not fit into 64 bits",
    "9" * 5000 + " s": "is too long",
    "INTERVAL": "is empty",
    "INTERVAL '5 MINUTE": "unclosed quote",
    "'5 minutes'": "cannot read duration",
    "INTERVAL '1:90' HOUR TO MINUTE": "has 90 in its minute field",
    "INTERVAL '1:2' MINUTE TO HOUR": "cannot read duration",
    "INTERVAL '1:2:3' HOUR TO MINUTE": "cannot read duration",
    "INTERVAL '-1:30' HOUR TO MINUTE": "'-1' is not a number",
    "INTERVAL 1 HOUR TO MINUTE": "cannot read duration",
    "INTERVAL '1:30' HOUR TO MINUTE MINUTE": "cannot read duration",
    "INTERVAL 5 '1:30' HOUR TO MINUTE": "cannot read duration",
    "INTERVAL '1' HOUR TO": "cannot read duration",
    "\N{ARABIC-INDIC DIGIT THREE} minutes": "is not a number",
}


@pytest.mark.parametrize(("text", "microseconds"), SPELLINGS.items())
def test_text_is_read_exactly(text: str, microseconds: int) -> None:
    assert duration(text) == microseconds


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=repr)
def test_values_that_are_no_text(value: object, expected: int) -> None:
    if expected >= 2**63:
        with pytest.raises(WindowError, match="does not fit into 64 bits"):
            duration(value)
    else:
        result = duration(value)
        assert (result, type(result)) == (expected, int)


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=lambda text: text[:40])
def test_text_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(WindowError) as refused:
        duration(text)
    assert message in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    "value",
    [
        *(True, 1.5, None, b"5 s", [5], 2**63, -(2**63) - 1, pd.NaT, pd.Timedelta(1, "ns")),
        *(np.timedelta64("NaT"), np.timedelta64(5), np.timedelta64(1, "ns")),
        *(np.timedelta64(1, "M"), np.timedelta64(1, "Y")),
    ],
    ids=repr,
)
def test_values_that_are_refused(value: object) -> None:
    with pytest.raises(WindowError) as refused:
        duration(value)
    assert refused.value.hint


def test_golden_messages() -> None:
    assert _message("5 minuts") == (
        "duration '5 minuts' has an unknown unit 'minuts'\nHint: did you mean minutes?"
    )
    assert _message("1 month") == (
        "duration '1 month' has no fixed length in 'month'\n"
        "Hint: months and years differ in length: use days or weeks"
    )
    assert _message("12") == (
        "duration '12' has no unit\nHint: write '12 seconds', or pass an integer for a plain number"
    )
    assert _message(1.5) == (
        "1.5 of type float is not a duration\n"
        "Hint: pass a text such as '1.5 hours', a timedelta, or an integer"
    )
    assert _message("soon") == (
        "cannot read duration 'soon'\n"
        "Hint: write a number and a unit, such as '12 minutes', '90s', '1h30m' "
        "or INTERVAL '5' MINUTE"
    )


def _message(value: object) -> str:
    with pytest.raises(WindowError) as refused:
        duration(value)
    return str(refused.value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_text_of_a_duration_reads_back(microseconds: int) -> None:
    assert duration(duration_text(microseconds)) == microseconds


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]))
def test_every_unit_in_both_spacings(count: int, unit: str, space: str) -> None:
    exact = count * UNITS[unit]
    if exact.denominator == 1:
        assert duration(f"{count}{space}{unit}") == exact


pieces = st.sampled_from(
    [
        "INTERVAL",
        "'",
        "-",
        ":",
        ".",
        "5",
        "0.5",
        "p",
        "pt",
        "t",
        "1h",
        "day",
        "hour",
        "second",
        "minutes",
        "to",
        " ",
        " ",
        "month",
        "ns",
    ]
)


@given(st.text(max_size=120) | st.lists(pieces, max_size=12).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(WindowError):
        assert isinstance(duration(text), int)


@given(st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)))
def test_timedelta_is_exact(value: timedelta) -> None:
    assert timedelta(microseconds=duration(value)) == value
