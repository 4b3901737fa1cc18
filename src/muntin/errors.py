"""What Muntin raises: one base, a few kinds, each message with a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN_PROBLEMS = 5


class MuntinError(Exception):
    """Base of every error that Muntin raises on purpose.

    Args:
        message: What is wrong, with the offending value.
        hint: What to do about it.

    >>> print(MuntinError("slide is 0", hint="use a positive duration"))
    slide is 0
    Hint: use a positive duration
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[MuntinError], message: str, hint: str | None) -> MuntinError:
    """An error that was pickled, as errors of worker processes are."""
    return kind(message, hint=hint)


class WindowError(MuntinError, ValueError):
    """A window, duration or slicing that cannot be built."""


class AggregateError(MuntinError, TypeError):
    """An aggregate that does not exist, or not for these arguments."""


class ExpressionError(MuntinError, ValueError):
    """An expression that cannot be bound to a schema, or is not allowed."""


class DataError(MuntinError, ValueError):
    """Input data that cannot be used as it is."""


class QuestionError(MuntinError, LookupError):
    """A question that nothing kept can answer, or not within its budget."""


class UnknownQueryError(MuntinError, KeyError):
    """A query name that is not in the set."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a query text; line and column count from 1, 0 where unknown."""

    message: str
    hint: str | None = None
    query: str | None = None
    line: int = 0
    column: int = 0
    source: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line else ""
        name = f"query {self.query}: " if self.query else ""
        parts = [f"{where}{name}{self.message}"]
        if self.source is not None and self.line:
            parts.append(f"  {self.source}\n  {' ' * (self.column - 1)}^")
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


class QueryError(MuntinError, ValueError):
    """Everything wrong with a set of queries, all at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            shown.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[type[QueryError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest known name, or with all names when they are few.

    >>> did_you_mean("symbl", ["symbol", "price"])
    'did you mean symbol?'
    """
    # Names that we give to columns of our own begin with a dollar sign.
    names = sorted(candidate for candidate in known if not candidate.startswith("$"))
    lowered = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    return f"known names: {', '.join(names)}" if 0 < len(names) <= 12 else None
