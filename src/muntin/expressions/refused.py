"""Functions that are known, but not allowed, and why."""

from __future__ import annotations

import difflib

from muntin.errors import did_you_mean
from muntin.expressions.problems import BindingError

CHANGES = "its value changes from call to call, so a replay would give other results"
OUTSIDE = "it reaches outside the row"
FROM_TEXT = "formats that are given as text are not evaluated here"

REASONS = {
    name: reason
    for reason, names in {
        CHANGES: "rand randn random randstr uniform uuid shuffle now current_timestamp "
        "current_date current_time curdate localtimestamp unix_timestamp "
        "monotonically_increasing_id spark_partition_id current_timezone",
        OUTSIDE: "reflect java_method try_reflect input_file_name input_file_block_start "
        "input_file_block_length current_user session_user user current_database current_catalog "
        "current_schema version assert_true raise_error",
        FROM_TEXT: "date_format to_number to_char from_unixtime",
    }.items()
    for name in names.split()
}


def unknown_function(name: str, known: list[str]) -> BindingError:
    """The error for a function that is not on the allow-list.

    >>> print(unknown_function("rand", []))
    rand is not allowed in an expression
    Hint: its value changes from call to call, so a replay would give other results
    >>> print(unknown_function("lenght", ["length", "lower"]))
    no function lenght
    Hint: did you mean length?
    """
    name = name.lower()
    if name in REASONS:
        return BindingError(f"{name} is not allowed in an expression", hint=REASONS[name])
    hint = did_you_mean(name, known) if difflib.get_close_matches(name, known, n=1) else None
    return BindingError(
        f"no function {name}",
        hint=hint
        or "compute it into a column of the input first, or write it with known functions",
    )
