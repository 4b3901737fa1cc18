"""Queries over rows with lifetimes built in Python, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from muntin.errors import Problem, QueryError
from muntin.queries.catalog import CreateRows
from muntin.queries.rows import RowOutput, RowQuery, SetKind, Show
from muntin.queries.source import check_text, shown
from muntin.queries.sql.normalize import dotted, quote
from muntin.queries.sql.parser import parse
from muntin.queries.sql.spellings import window_text
from muntin.queries.texts import all_of, checked, item_text, named_texts
from muntin.windows import Window
from muntin.windows.duration import DurationLike

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
_HOW = ("inner", "left", "right", "full", "semi", "anti")
_ALL = "*"


@dataclass(frozen=True)
class RowBuilder:
    """A query over rows with lifetimes in the making; every step returns another builder.

    ``query(name).from_(stream, alias).window(range).select(...)`` starts one.

    >>> from muntin.queries import query
    >>> paid = query("paid").from_("payments", "p").window("1 hour").select("1")
    >>> unpaid = (
    ...     query("unpaid").from_("orders", "o").window("10 minutes")
    ...     .select("o.id", total="o.amount")
    ...     .not_exists(paid.where("p.order_id = o.id"))
    ... )
    >>> print(unpaid.build())
    CREATE QUERY unpaid AS SELECT id, amount AS total FROM orders [RANGE '10 minutes'] AS o \
WHERE NOT EXISTS (SELECT 1 AS `1` FROM payments [RANGE '1 hour'] AS p WHERE p.order_id = o.id)
    """

    name: str
    source: str
    alias: str | None
    spec: Window
    time: str | None = None
    items: tuple[tuple[str, str | None], ...] = ()
    joins: tuple[_Joined, ...] = ()
    conditions: tuple[str, ...] = ()
    partners: tuple[tuple[str, RowBuilder], ...] = ()
    unique: bool = False
    others: tuple[tuple[SetKind, RowBuilder], ...] = ()
    shows: Show = "rows"
    lasting: Window | None = None
    inside: bool = False
    shown_as: RowOutput | None = None
    restored: bool = False
    approximated: bool = False
    replicated: bool = False
    groups: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    fills: bool = False

    def select(self, *expressions: str, **named: str) -> RowBuilder:
        """Further columns of the results; ``*`` and ``o.*`` take all columns of streams.

        Where they are aggregates, the rows alive at each window end are aggregated.
        """
        return replace(self, items=self.items + _items(expressions, named))

    def group_by(self, *expressions: str) -> RowBuilder:
        """The groups of aggregates; they lead the results.

        >>> from muntin.queries import query
        >>> paid = query("paid").from_("orders", "o").window(10, 5).select(n="count(*)")
        >>> paid = paid.join("payments", "o.id = p.id", window=5, alias="p").group_by("o.region")
        >>> print(paid.having("count(*) > 1").sql())
        CREATE QUERY paid AS
        SELECT count(*) AS n
        FROM orders [RANGE 10 SLIDE 5] AS o
        JOIN payments [RANGE 5] AS p ON o.id = p.id
        GROUP BY o.region
        HAVING count(*) > 1
        """
        return replace(self, groups=self.groups + checked(expressions))

    def having(self, *conditions: str) -> RowBuilder:
        """Conditions that groups must satisfy, all of them."""
        return replace(self, kept=self.kept + checked(conditions))

    def emit_empty(self, emit: bool = True) -> RowBuilder:
        """Whether windows without rows give a row too; for aggregates without groups."""
        return replace(self, fills=emit)

    def join(
        self,
        stream: str,
        on: str,
        *,
        window: DurationLike | Window | None = None,
        how: How = "inner",
        alias: str | None = None,
        unmatched: bool = False,
    ) -> RowBuilder:
        """Joins rows with those of another stream that are alive together with them.

        Without a window it is a table: rows are joined with it as it is when they come, and
        ``how`` is inner or left. ``unmatched`` pads only rows of an outer join that never have a
        partner.

        >>> from muntin.queries import query
        >>> orders = query("paid").from_("orders", "o").window("10 minutes").select("o.id")
        >>> print(orders.join("payments", "o.id = p.id", window="1 hour", alias="p").sql())
        CREATE QUERY paid AS
        SELECT o.id
        FROM orders [RANGE '10 minutes'] AS o
        JOIN payments [RANGE '1 hour'] AS p ON o.id = p.id
        """
        if how not in _HOW:
            hint = f"use one of {', '.join(_HOW)}"
            raise QueryError([Problem(f"there is no join of kind {shown(repr(how))}", hint=hint)])
        spec = window if isinstance(window, Window | None) else Window(window)
        if spec is None and (how not in ("inner", "left") or unmatched):
            hint = "give it a window if it is a stream; a table takes inner or left"
            raise QueryError([Problem(f"{shown(stream)} has no window", hint=hint)])
        label = None if alias is None else check_text(alias, "an alias")
        name, (condition,) = check_text(stream, "the name of a stream"), checked((on,))
        joined = _Joined(name, label, spec, how, condition, unmatched)
        return replace(self, joins=(*self.joins, joined))

    def where(self, *conditions: str) -> RowBuilder:
        """Conditions that rows must satisfy, all of them."""
        return replace(self, conditions=self.conditions + checked(conditions))

    def exists(self, other: RowBuilder) -> RowBuilder:
        """Rows while a row of another query is alive, which may compare itself with them."""
        return replace(self, partners=(*self.partners, ("EXISTS", other)))

    def not_exists(self, other: RowBuilder) -> RowBuilder:
        """Rows while no row of another query is alive."""
        return replace(self, partners=(*self.partners, ("NOT EXISTS", other)))

    def is_in(self, value: str, other: RowBuilder) -> RowBuilder:
        """Rows while a value is among those that another query shows."""
        return replace(self, partners=(*self.partners, (f"{checked((value,))[0]} IN", other)))

    def not_in(self, value: str, other: RowBuilder) -> RowBuilder:
        """Rows while a value is not among those that another query shows, as SQL's NOT IN."""
        return replace(self, partners=(*self.partners, (f"{checked((value,))[0]} NOT IN", other)))

    def distinct(self) -> RowBuilder:
        """Each combination of values once."""
        return replace(self, unique=True)

    def union_all(self, other: RowBuilder) -> RowBuilder:
        """The rows of both."""
        return self._with("union all", other)

    def union(self, other: RowBuilder) -> RowBuilder:
        """The values of both, once each."""
        return self._with("union", other)

    def except_all(self, other: RowBuilder) -> RowBuilder:
        """These rows, less one for each equal row of the other."""
        return self._with("except all", other)

    def except_(self, other: RowBuilder) -> RowBuilder:
        """The values that the other does not have, once each."""
        return self._with("except", other)

    def intersect(self, other: RowBuilder) -> RowBuilder:
        """The values that both have, once each."""
        return self._with("intersect", other)

    def _with(self, kind: SetKind, other: RowBuilder) -> RowBuilder:
        return replace(self, others=(*self.others, (kind, other)))

    def istream(self) -> RowBuilder:
        """What enters the answer, in place of the answer."""
        return replace(self, shows="istream")

    def dstream(self) -> RowBuilder:
        """What leaves the answer, in place of the answer."""
        return replace(self, shows="dstream")

    def wstream(self, range: DurationLike) -> RowBuilder:  # noqa: A002
        """Results that live for ``range``, whatever their parts do."""
        return replace(self, lasting=Window(range))

    def internal(self) -> RowBuilder:
        """Results that never end: the windows say only which rows meet."""
        return replace(self, inside=True)

    def output(self, kind: RowOutput) -> RowBuilder:
        """How results that end early are shown: ``final`` or ``changes``."""
        return replace(self, shown_as=kind)

    def restore(self) -> RowBuilder:
        """Shows what lived only between two window ends once, at the next."""
        return replace(self, restored=True)

    def approximate(self) -> RowBuilder:
        """Lets sums of products of several streams' doubles be products of sums, per key."""
        return replace(self, approximated=True)

    def replicate(self) -> RowBuilder:
        """Splits hot keys on Spark: the largest side is spread, the others are copied."""
        return replace(self, replicated=True)

    def sql(self) -> str:
        """The query as SQL text, which may still hold problems."""
        options = []
        if self.shown_as is not None:
            options.append(f"output = '{check_text(self.shown_as, 'an output')}'")
        if self.restored:
            options.append("restore = true")
        if self.approximated:
            options.append("approximate = true")
        if self.replicated:
            options.append("skew = 'replicate'")
        said = f" WITH ({', '.join(options)})" if options else ""
        body = self.select_text(self.inside)
        if self.lasting is not None:
            body = f"Wstream(\n{body}\n){window_text(self.lasting)}"
        elif self.shows != "rows":
            body = f"{self.shows.capitalize()}(\n{body}\n)"
        return f"CREATE QUERY {quote(self.name)}{said} AS\n{body}"

    def build(self) -> RowQuery:
        """The query; problems point into :meth:`sql`."""
        (statement,) = parse(self.sql())
        assert isinstance(statement, CreateRows)
        return statement.query

    def select_text(self, inside: bool = False) -> str:
        """Its SELECT alone, as another query holds it."""
        body = self._selection(inside)
        for number, (kind, other) in enumerate(self.others):
            # Chains of set operations mean what they say from left to right.
            left = f"({body})" if number else body
            right = other.select_text(inside)
            body = f"{left}\n{kind.upper()}\n{f'({right})' if other.others else right}"
        return body

    def _selection(self, inside: bool) -> str:
        items = ", ".join(item_text(*item) for item in self.items)
        first = _source(self.source, self.alias, self.spec, self.time, inside)
        lines = [f"SELECT {'DISTINCT ' if self.unique else ''}{items}", f"FROM {first}"]
        lines += [each.text(inside) for each in self.joins]
        conditions = [] if not self.conditions else [f"({all_of(self.conditions)})"]
        conditions += [f"{word} ({other.select_text(inside)})" for word, other in self.partners]
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        if self.groups:
            lines.append(f"GROUP BY {', '.join(self.groups)}")
        if self.kept:
            lines.append(f"HAVING {all_of(self.kept)}")
        if self.fills:
            lines.append("EMIT EMPTY")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Joined:
    """One more stream of FROM."""

    stream: str
    alias: str | None
    spec: Window | None
    how: How
    on: str
    unmatched: bool

    def text(self, inside: bool) -> str:
        word = "" if self.how == "inner" else f"{self.how.upper()} "
        source = _source(self.stream, self.alias, self.spec, None, inside)
        return f"{word}JOIN {source} ON {self.on}{' EMIT UNMATCHED' if self.unmatched else ''}"


def _source(
    stream: str, alias: str | None, spec: Window | None, time: str | None, inside: bool
) -> str:
    window = "" if spec is None else f" {window_text(spec, time)}"
    if inside and window:
        window = f"{window[:-1]} INTERNAL]"
    return f"{dotted(stream)}{window}{'' if alias is None else f' AS {quote(alias)}'}"


def _items(texts: tuple[str, ...], named: dict[str, str]) -> tuple[tuple[str, str | None], ...]:
    found: list[tuple[str, str | None]] = []
    for text in texts:
        label, dot, star = check_text(text, "an expression").strip().rpartition(".")
        if star == _ALL and (not dot or label.isidentifier()):
            found.append((f"{quote(label)}.*" if dot else _ALL, None))
        else:
            found += named_texts((text,), {})
    return (*found, *named_texts((), named))
