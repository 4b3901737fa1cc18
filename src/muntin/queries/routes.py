"""Which queries read which stream, by the names in FROM."""

from __future__ import annotations

from collections.abc import Iterable

from muntin.errors import Problem, QueryError, did_you_mean
from muntin.queries.query import Query


def routed(queries: Iterable[Query], streams: Iterable[str]) -> dict[str, list[Query]]:
    """The queries over each stream; letter case makes no difference.

    A single stream without a name, ``""``, has them all.

    Raises:
        QueryError: With a problem for every query over another stream.
    """
    names = list(streams)
    is_any = names == [""]
    known = {name.lower(): name for name in names}
    found: dict[str, list[Query]] = {name: [] for name in names}
    problems = []
    for query in queries:
        name = known.get("" if is_any else query.source.lower())
        if name is None:
            hint = did_you_mean(query.source, names)
            problems.append(Problem(f"there is no input {query.source!r}", hint, query.name))
        else:
            found[name].append(query)
    if problems:
        raise QueryError(problems)
    return found
