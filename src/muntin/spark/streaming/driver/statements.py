"""What a user asks of a run: statements while it is under way, and other queries at a restart."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from muntin.errors import MuntinError
from muntin.queries import AnyQuery, all_queries

_logger = logging.getLogger("muntin.spark")


def reconcile(
    running: Sequence[AnyQuery], before: Sequence[AnyQuery], asked: Sequence[AnyQuery]
) -> list[AnyQuery]:
    """The queries to go on with: those that ran, with what the caller changed since.

    A query that is asked for as it was before stays as it was, also if it has been removed or
    replaced while the stream ran.
    """
    result = {query.name.lower(): query for query in running}
    known = {query.name.lower(): query for query in before}
    wanted = {query.name.lower(): query for query in asked}
    for name in [name for name in known if name not in wanted and name in result]:
        _logger.info("query %s is not asked for any more, and leaves", result.pop(name).name)
    for name, query in wanted.items():
        if known.get(name) == query:
            if name not in result:
                _logger.info("query %s was removed while the stream ran, and stays out", query.name)
            continue
        if result.get(name) != query:
            verb = "replaces the one of its name" if name in result else "joins"
            _logger.info("query %s %s", query.name, verb)
        result[name] = query
    for query in result.values():
        if query.name.lower() not in wanted:
            _logger.info("query %s was added while the stream ran, and goes on", query.name)
    return list(result.values())


def parsed(texts: Sequence[str]) -> list[AnyQuery]:
    """The queries that a checkpoint holds as SQL."""
    try:
        return list(all_queries(list(texts))) if texts else []
    except MuntinError as error:
        raise MuntinError(
            f"a query of the checkpoint is not understood: {error}",
            hint="continue with the version of Muntin that wrote it",
        ) from error
