"""The allow-list, one family of functions per file."""

from muntin.expressions.functions import (
    arithmetic,
    casts,
    comparison,
    conditional,
    dates,
    logic,
    math,
    patterns,
    strings,
)

FAMILIES = (
    arithmetic.FUNCTIONS,
    casts.FUNCTIONS,
    comparison.FUNCTIONS,
    conditional.FUNCTIONS,
    dates.FUNCTIONS,
    logic.FUNCTIONS,
    math.FUNCTIONS,
    patterns.FUNCTIONS,
    strings.FUNCTIONS,
)
