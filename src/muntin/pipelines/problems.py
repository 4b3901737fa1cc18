"""All that is wrong with a SQL file, each at its place in it."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.errors import Problem, QueryError


class PipelineError(QueryError):
    """Everything wrong with a SQL file; its text shows every problem.

    Args:
        problems: What is wrong, in the order of the file.
        file: The path of the file as the user wrote it; None for text.

    >>> print(PipelineError([Problem("no column vl", "did you mean vol?", "a", 3, 8, "SELECT vl")],
    ...                     "trades.sql"))
    trades.sql:3:8: query a: no column vl
      SELECT vl
             ^
      Hint: did you mean vol?
    """

    def __init__(self, problems: Sequence[Problem], file: str | None = None) -> None:
        super().__init__(problems)
        self.file = file
        self.message = "\n".join(located(problem, file) for problem in self.problems)

    def __reduce__(self) -> tuple[type[PipelineError], tuple[tuple[Problem, ...], str | None]]:  # type: ignore[override]
        return type(self), (self.problems, self.file)


def located(problem: Problem, file: str | None) -> str:
    """A problem with its place first, as compilers write it, so that editors find it."""
    place = file or "text"
    if problem.line:
        place += f":{problem.line}:{problem.column}"
    name = f"query {problem.query}: " if problem.query else ""
    lines = [f"{place}: {name}{problem.message}"]
    if problem.source is not None and problem.line:
        lines += [f"  {problem.source}", f"  {' ' * (problem.column - 1)}^"]
    if problem.hint:
        lines.append(f"  Hint: {problem.hint}")
    return "\n".join(lines)
