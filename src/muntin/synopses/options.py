"""What a question may ask for beside its text: isolation, and how much it may take."""

from __future__ import annotations

from functools import lru_cache

from muntin.errors import DataError
from muntin.synopses.answer import ISOLATIONS, Isolation
from muntin.windows import DurationLike, duration

TIMEOUT = "1 second"
MAX_ROWS = 100_000
# Isolation, seconds and rows.
Options = tuple[Isolation, float, int]
_USUAL: Options = ("lws", 1.0, MAX_ROWS)


def options_of(isolation: str, timeout: DurationLike, rows: int) -> Options:
    """The options of a question, checked; seconds instead of a duration.

    >>> options_of("ws", "2 minutes", 10)
    ('ws', 120.0, 10)
    """
    if isolation == "lws" and timeout is TIMEOUT and rows is MAX_ROWS:
        return _USUAL
    if isolation not in ISOLATIONS:
        raise DataError(
            f"isolation must be one of {', '.join(ISOLATIONS)}, not {isolation!r}",
            hint='use "lws" for the newest version, "ws" for any version',
        )
    seconds = _seconds(timeout)
    if not seconds > 0:
        raise DataError(f"timeout must be above 0, not {timeout!r}", hint="as in '1 second'")
    if not isinstance(rows, int) or rows < 1:
        raise DataError(f"max_rows must be 1 or more, not {rows!r}", hint="as in 100_000")
    return isolation, seconds, rows


def _seconds(timeout: DurationLike) -> float:
    if isinstance(timeout, str):
        return _seconds_of(timeout)
    return float(timeout) if isinstance(timeout, int | float) else duration(timeout) / 1e6


@lru_cache
def _seconds_of(text: str) -> float:
    return duration(text) / 1e6
