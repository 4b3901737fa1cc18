"""What a user hands to a run that is under way, as statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from muntin.queries import CreateQuery, QueriesLike, Query, QueryBuilder, Statement, parse
from muntin.queries import queries as read_queries


def statements_of(spec: QueriesLike, taken: Collection[str]) -> list[Statement]:
    """The statements that SQL text, a path to a .sql file, or queries mean.

    A SELECT on its own gets a name that is not taken.

    >>> statements_of("DROP QUERY spikes", ())
    [DropQuery(name='spikes')]
    """
    parts = [spec] if isinstance(spec, str | Path | Query | QueryBuilder) else list(_many(spec))
    found: list[Statement] = []
    for part in parts:
        names = {*taken, *(one.query.name for one in found if isinstance(one, CreateQuery))}
        if isinstance(part, str) and not part.endswith(".sql"):
            found += parse(part, 1, names)
        elif isinstance(part, str | Path) and Path(part).is_file():
            found += parse(Path(part).read_text(encoding="utf-8"), 1, names)
        else:
            found += [CreateQuery(query) for query in read_queries(part)]  # type: ignore[arg-type]
    return found


def _many(spec: object) -> Iterable[object]:
    # What is no query at all is refused with the others, in the words of the reader.
    return spec if isinstance(spec, Iterable) and not isinstance(spec, bytes) else [spec]
