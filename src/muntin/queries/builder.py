"""Queries built in Python, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from muntin.aggregates.caps import UNSAID, Guarantees, OnCap
from muntin.errors import Problem, QueryError
from muntin.queries.catalog import CreateQuery
from muntin.queries.query import JoinKind, Query, options_text
from muntin.queries.row_builder import RowBuilder
from muntin.queries.source import check_text, shown
from muntin.queries.sql.normalize import dotted, quote
from muntin.queries.sql.parser import parse
from muntin.queries.sql.spellings import window_text
from muntin.queries.texts import all_of, checked, item_text, named_texts
from muntin.windows import Window
from muntin.windows.duration import DurationLike
from muntin.windows.spec import Align, Measure

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN"}


@dataclass(frozen=True)
class QueryBuilder:
    """A query in the making; every step returns another builder, so steps can be shared.

    Expressions are SQL text and checked at once. A builder is accepted wherever a query is.

    >>> from muntin.queries import query
    >>> spikes = (
    ...     query("spikes")
    ...     .window("12 minutes", "5 minutes")
    ...     .where("vol > 50000")
    ...     .group_by("symbol")
    ...     .agg(value="sum(price * vol)")
    ... )
    >>> print(spikes.build())
    CREATE QUERY spikes AS SELECT symbol, sum(price * vol) AS value FROM input \
[RANGE '12 minutes' SLIDE '5 minutes'] WHERE vol > 50000 GROUP BY symbol
    """

    name: str
    spec: Window | None = None
    source: str = "input"
    alias: str | None = None
    joins: tuple[str, ...] = ()
    time: str | None = None
    conditions: tuple[str, ...] = ()
    groups: tuple[tuple[str, str | None], ...] = ()
    outputs: tuple[tuple[str, str | None], ...] = ()
    filters: tuple[str, ...] = ()
    empty: bool = False
    technique: str | None = None
    preference: str | None = None
    guarantees: Guarantees = UNSAID

    def window(
        self,
        range: DurationLike | Window,  # noqa: A002
        slide: DurationLike | None = None,
        offset: DurationLike = 0,
        align: Align = "end",
        measure: Measure = "time",
        *,
        time: str | None = None,
    ) -> QueryBuilder:
        """The window: a range and a slide, or a :class:`~muntin.windows.Window`.

        ``time`` names the time column, where it is not the one of the run.
        """
        if time is not None:
            check_text(time, "the time column")
        if isinstance(range, Window):
            return replace(self, spec=range, time=time)
        spec = Window(range, slide, offset, align, measure)
        return replace(self, spec=spec, time=time)

    def rows(self, count: int, slide: int = 1) -> QueryBuilder:
        """A window over the last ``count`` rows, that ends every ``slide`` rows."""
        return self.window(count, slide, measure="rows")

    def from_(self, source: str, alias: str | None = None) -> QueryBuilder:
        """The stream to read, and what columns may call it."""
        if alias is not None:
            check_text(alias, "an alias")
        return replace(self, source=check_text(source, "the name of a stream"), alias=alias)

    def join(
        self,
        table: str,
        on: str | None = None,
        *,
        using: str | Sequence[str] = (),
        how: JoinKind = "inner",
        alias: str | None = None,
    ) -> QueryBuilder:
        """Joins rows with a table, on equalities or on columns of the same names.

        >>> from muntin.queries import query
        >>> movers = query("movers").from_("trades").window(600, 600).agg(n="count(*)")
        >>> print(movers.join("close", on="trades.symbol = close.symbol", how="left").sql())
        CREATE QUERY movers AS
        SELECT count(*) AS n
        FROM trades [RANGE 600 SLIDE 600]
        LEFT JOIN close ON trades.symbol = close.symbol
        """
        names = (using,) if isinstance(using, str) else tuple(using)
        _check_join(how, on, names)
        words = [_JOINS[how], dotted(check_text(table, "the name of a table"))]
        if alias is not None:
            words.append(f"AS {quote(check_text(alias, 'an alias'))}")
        if on is not None:
            words.append(f"ON {checked((on,))[0]}")
        else:
            columns = [quote(check_text(name, "the name of a column")) for name in names]
            words.append(f"USING ({', '.join(columns)})")
        return replace(self, joins=(*self.joins, " ".join(words)))

    def where(self, *conditions: str) -> QueryBuilder:
        """Conditions that rows must satisfy, all of them."""
        return replace(self, conditions=self.conditions + checked(conditions))

    def group_by(self, *expressions: str, **named: str) -> QueryBuilder:
        """Group columns; a keyword gives a column its name."""
        return replace(self, groups=self.groups + named_texts(expressions, named))

    def agg(self, *expressions: str, **named: str) -> QueryBuilder:
        """What to compute; a keyword gives a column its name."""
        return replace(self, outputs=self.outputs + named_texts(expressions, named))

    def select(self, *expressions: str, **named: str) -> RowBuilder:
        """Columns of the rows themselves, with their lifetimes, in place of aggregates.

        What follows are the steps of a :class:`~muntin.queries.RowBuilder`.

        >>> from muntin.queries import query
        >>> large = query("large").from_("trades").window("5 minutes").where("vol > 50000")
        >>> print(large.select("symbol", value="price * vol").build())
        CREATE QUERY large AS SELECT symbol, price * vol AS value FROM trades \
[RANGE '5 minutes'] WHERE vol > 50000
        """
        others = (self.joins, self.groups, self.outputs, self.filters, self.technique, self.empty)
        if any(others) or self.preference is not None or self.guarantees.given:
            hint = "call it right after from_, window and where"
            raise QueryError([Problem("select is for rows without aggregates", hint, self.name)])
        spec = self._window()
        start = RowBuilder(self.name, self.source, self.alias, spec, self.time)
        return replace(start, conditions=self.conditions).select(*expressions, **named)

    def having(self, *conditions: str) -> QueryBuilder:
        """Conditions that result rows must satisfy, all of them."""
        return replace(self, filters=self.filters + checked(conditions))

    def emit_empty(self, emit: bool = True) -> QueryBuilder:
        """Whether windows without rows give a row too."""
        return replace(self, empty=emit)

    def by(
        self, technique: str | None = None, prefer: Literal["throughput", "latency"] | None = None
    ) -> QueryBuilder:
        """The final technique of all its aggregates, or what the planner is to choose it by.

        >>> from muntin.queries import query
        >>> print(query("top").window(6, 2).agg("max(v)").by("daba_lite").build())
        CREATE QUERY top WITH (technique = 'daba_lite') AS SELECT max(v) AS `max(v)` FROM input \
[RANGE 6 SLIDE 2]
        """
        for each, what in ((technique, "the name of a technique"), (prefer, "what is preferred")):
            if each is not None:
                check_text(each, what)
        return replace(self, technique=technique, preference=prefer)

    def guarantee(
        self,
        *,
        bounds: bool | None = None,
        on_cap: OnCap | None = None,
        cap_values: int | None = None,
        cap_bytes: int | None = None,
    ) -> QueryBuilder:
        """Bounds beside approximate aggregates, and how many values a window may have.

        >>> from muntin.queries import query
        >>> seen = query("seen").window(6, 2).agg("count(DISTINCT v)")
        >>> print(seen.guarantee(on_cap="fail", cap_values=500).build())
        CREATE QUERY seen WITH (on_cap = 'fail', cap_values = 500) AS SELECT count(DISTINCT v) AS \
`count(DISTINCT v)` FROM input [RANGE 6 SLIDE 2]
        """
        said = Guarantees(bounds, on_cap, cap_values, cap_bytes)
        return replace(self, guarantees=said.otherwise(self.guarantees))

    def _options(self) -> str:
        return options_text(self.technique, self.preference, self.guarantees)

    def sql(self) -> str:
        """The query as SQL text, which may still hold problems."""
        spec = self._window()
        items = ", ".join(item_text(*item) for item in self.groups + self.outputs)
        alias = f" AS {quote(self.alias)}" if self.alias is not None else ""
        lines = [
            f"CREATE QUERY {quote(self.name)}{self._options()} AS",
            f"SELECT {items or 'window_start'}",
            f"FROM {dotted(self.source)}{alias} {window_text(spec, self.time)}",
            *self.joins,
        ]
        if self.conditions:
            lines.append(f"WHERE {all_of(self.conditions)}")
        if self.groups:
            lines.append(f"GROUP BY {', '.join(text for text, _ in self.groups)}")
        if self.filters:
            lines.append(f"HAVING {all_of(self.filters)}")
        if self.empty:
            lines.append("EMIT EMPTY")
        return "\n".join(lines)

    def _window(self) -> Window:
        if self.spec is not None:
            return self.spec
        hint = f'write query("{self.name}").window("12 minutes", "5 minutes")'
        raise QueryError([Problem("the query has no window", hint=hint, query=self.name)])

    def build(self) -> Query:
        """The query; problems point into :meth:`sql`."""
        (statement,) = parse(self.sql())
        if not isinstance(statement, CreateQuery):
            hint = "aggregate in agg, as in sum(price); or use select for rows themselves"
            raise QueryError([Problem("the query has no aggregate", hint=hint, query=self.name)])
        return replace(statement.query, window=self._window())


def query(name: str) -> QueryBuilder:
    """Starts a query under a name of letters, digits and _."""
    return QueryBuilder(check_text(name, "the name of a query"))


def _check_join(how: str, on: str | None, using: tuple[str, ...]) -> None:
    if how not in _JOINS:
        message, hint = f"there is no join of kind {shown(repr(how))}", "use 'inner' or 'left'"
    elif (on is None) == (not using):
        message, hint = "a join takes either on= or using=", 'write on="trades.k = close.k"'
    else:
        return
    raise QueryError([Problem(message, hint=hint)])
