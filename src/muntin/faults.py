"""Values that fail, rows without a usable time, streams that cannot be read: what is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from muntin.display import count
from muntin.errors import DataError

GUARD_HINT = 'guard the expression, or take NULL for such values with on_error="null"'
SKIP_HINT = 'filter them out first, or count and skip them with on_bad_row="skip"'


def is_fail(option: str, value: str, other: str) -> bool:
    """Whether an option says ``fail``; it may say one other thing.

    >>> is_fail("on_error", "null", "null")
    False
    """
    if value not in (other, "fail"):
        raise DataError(f"{option} must be {other} or fail, not {value!r}")
    return value == "fail"


def failed_values(errors: Counter[str], where: str = "", hint: str = GUARD_HINT) -> DataError:
    """What to say of values that failed, counted by query.

    >>> print(failed_values(Counter(q1=2)).message)
    2 values failed (overflow, division by zero or a bad cast), 2 of them in query q1
    """
    name, most = errors.most_common(1)[0]
    return DataError(
        f"{count(errors.total(), 'value')}{where} failed (overflow, division by zero or a bad "
        f"cast), {most:,} of them in query {name}",
        hint=hint,
    )


def bad_rows(rows: int, where: str, hint: str = SKIP_HINT) -> DataError:
    """What to say of rows without a usable time, in a column or a batch.

    >>> print(bad_rows(1, "column 'ts'").message)
    column 'ts' has 1 row without a usable time
    """
    return DataError(f"{where} has {count(rows, 'row')} without a usable time", hint=hint)


@contextmanager
def about_stream(name: str | None) -> Iterator[None]:
    """What is wrong with the data of one of several streams, told with its name.

    >>> with about_stream("orders"):
    ...     raise DataError("there is no time column 'tz'")
    Traceback (most recent call last):
    muntin.errors.DataError: stream orders: there is no time column 'tz'
    """
    try:
        yield
    except DataError as error:
        if name is None:
            raise
        raise DataError(f"stream {name}: {error.message}", hint=error.hint) from error
