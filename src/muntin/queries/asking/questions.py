"""A question: a SELECT over a window that ends when it is asked, its constants told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem, QueryError
from muntin.queries.analysis.select import analyze_window
from muntin.queries.asking.words import CONSTANTS, QuickWords, Word, words_of
from muntin.queries.query import BOUNDS, Query
from muntin.queries.reader import StatementReader
from muntin.queries.report import Report
from muntin.queries.source import Lines, shown
from muntin.queries.sql.clauses import MAX_DIGITS, WindowClause
from muntin.queries.sql.depth import deep_stack
from muntin.queries.sql.dialect import Muntin
from muntin.queries.sql.keeps import QuestionGrammar
from muntin.queries.sql.normalize import canonical_text, normalize

AsOf: TypeAlias = Literal["latest", "watermark", "at"]
_NAME = "question"
_WINDOW_HINT = "write FROM stream [RANGE '7 minutes'], or [ROWS 10] where the latest rows are kept"
_LIMIT_HINT = "write LIMIT 10"
_ORDER_HINT = "order by columns of the result, by their names"
# What is read within a fraction of a second: a question's timeout begins when it is read.
MOST_WORDS = 10_000
MOST_CONNECTIVES = 256
_CONNECTIVES = (TokenType.AND, TokenType.OR)


@dataclass(frozen=True)
class Ordering:
    """One column that an answer is ordered by."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Free:
    """The words of a question whose constants may be others, by their places among its words.

    ``keys`` are those compared for equality with a column, each with the column's name.
    """

    range: int | None = None
    at: int | None = None
    limit: int | None = None
    keys: tuple[tuple[int, str], ...] = ()

    @property
    def places(self) -> frozenset[int]:
        """All of them."""
        alone = {place for place in (self.range, self.at, self.limit) if place is not None}
        return frozenset(alone | {place for place, _ in self.keys})


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        query: The SELECT; its window has a range and no slide.
        as_of: When the window ends: one tick after the latest event time, at W, or ``at``.
        at: The time as written, where ``as_of`` is ``at``.
        aligned: Whether the window may be widened to whole slices of what is kept.
        within: How wide bounds may be, in percent of the answer.
        order: What the answer is ordered by; its group columns if nothing is said.
        limit: How many rows it has at most.
        free: The constants that may be others.
        partition: The columns by which the latest rows are counted, of a window of ROWS.
    """

    query: Query
    as_of: AsOf = "latest"
    at: str | int | None = None
    aligned: bool = False
    within: float | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    free: Free = Free()
    partition: tuple[str, ...] = ()


def source_of(text: str) -> str:
    """The stream that a question is about."""
    return read_question(text, words_of(text)).query.source


def read_question(text: str, tokens: Sequence[Word]) -> Question:
    """The question of a text that was cut into words.

    Raises:
        QueryError: With all that is wrong with it.

    >>> text = "SELECT max(v) FROM s [RANGE 7 AS OF WATERMARK] WHERE k = 'a' LIMIT 3"
    >>> question = read_question(text, words_of(text))
    >>> question.as_of, question.limit, question.query.window.range, question.free.range
    ('watermark', 3, 7, 9)
    """
    is_quick = isinstance(tokens, QuickWords)
    words = words_of(text) if is_quick else cast("list[Token]", list(tokens))
    _check_size(words)
    reader = StatementReader(Lines(text), QuestionGrammar(dialect=Muntin()), list(words))
    with deep_stack():
        node = reader.parse() if words else None
        report = reader.report
        if not words:
            report.add_at(0, "there is no question", "write SELECT ... FROM s [RANGE ...]")
        found = None if node is None else _Reading(node, words, report).question()
    if found is None or report.problems:
        raise QueryError(report.problems)
    return found


def _check_size(words: Sequence[Token]) -> None:
    """Refuse what takes longer to read than a question may take to answer."""
    if len(words) > MOST_WORDS:
        problem = f"the question has {len(words):,} words, but at most {MOST_WORDS:,} are allowed"
        raise QueryError([Problem(problem, "ask several questions, or one that rolls groups up")])
    joined = sum(word.token_type in _CONNECTIVES for word in words)
    if joined > MOST_CONNECTIVES:
        most = MOST_CONNECTIVES
        problem = f"the question has {joined:,} ANDs and ORs, but at most {most} are allowed"
        raise QueryError([Problem(problem, "write k IN (1, 2, 3), or ask several questions")])


class _Reading:
    def __init__(self, node: exp.Expr, tokens: list[Token], report: Report) -> None:
        self.node = node
        self.report = report
        self.tokens = tokens
        self.places = {token.start: place for place, token in enumerate(tokens)}

    def question(self) -> Question | None:
        order = limit = None
        if isinstance(self.node, exp.Select):
            order, limit = self.node.args.pop("order", None), self.node.args.pop("limit", None)
            self._refuse_bounds(self.node)
        found = analyze_window(self.node, _NAME, self.report, _WINDOW_HINT)
        if found is None:
            return None
        query, clause = found
        if not self._check(query, clause):
            return None
        as_of, at = _instant(clause)
        within = clause.args.get("within")
        return Question(
            query,
            as_of,
            at,
            bool(clause.args.get("aligned")),
            None if within is None else float(within.name),
            self._order(order, query),
            self._limit(limit),
            self._free(query, clause, limit),
            tuple(each.name for each in clause.args.get("partition") or ()),
        )

    def _refuse_bounds(self, node: exp.Select) -> None:
        """Refuse the bounds of windows as columns: queries lead with them, an answer has one."""
        for item in node.expressions:
            named = item.unalias()
            if isinstance(named, exp.Column) and named.name.lower() in BOUNDS:
                message = f"the answer to a question has no column {named.name}"
                self.report.add(item, message, "leave it out: answer.covers says what window it is")

    def _check(self, query: Query, clause: WindowClause) -> bool:
        window = query.window
        if window.measure == "rows":
            for word, key in (("AS OF", "as_of"), ("ALIGNED", "aligned"), ("WITHIN", "within")):
                if clause.args.get(key):
                    message = f"the latest rows have no {word}"
                    self.report.add(None, message, "leave it out, or ask over a RANGE of time")
            if query.joins:
                message = "the latest rows are not joined with tables"
                self.report.add(None, message, "ask over a RANGE of a keep that joins them")
        if window.slide is not None:
            hint = "leave out SLIDE: a question is answered once; or register it as a query"
            self.report.add(None, "a question has no SLIDE", hint)
        if query.emit_empty:
            self.report.add(None, "a question has no EMIT EMPTY", "leave it out")
        return not self.report.problems

    def _limit(self, limit: exp.Expr | None) -> int | None:
        if limit is None:
            return None
        count = limit.expression
        number = whole_number(count.name) if isinstance(count, exp.Literal) else None
        if number is not None:
            return number
        self.report.add(limit, "LIMIT takes a whole number", _LIMIT_HINT)
        return None

    def _order(self, order: exp.Expr | None, query: Query) -> tuple[Ordering, ...]:
        if order is None:
            return ()
        outputs = [*query.group_by, *query.select]
        names = {output.name.lower(): output.name for output in outputs}
        texts = {canonical_text(output.node): output.name for output in outputs}
        found = []
        for item in order.expressions:
            node = normalize(item.this.copy())
            name = node.name.lower() if isinstance(node, exp.Column) else ""
            column = names.get(name) or texts.get(canonical_text(node))
            if column is None:
                message = f"{shown(canonical_text(node))} is not a column of the answer"
                self.report.add(item, message, _ORDER_HINT)
                continue
            found.append(
                Ordering(column, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
            )
        return tuple(found)

    def _free(self, query: Query, clause: WindowClause, limit: exp.Expr | None) -> Free:
        keys = [] if query.where is None else list(self._equalities(query.where))
        as_of = clause.args.get("as_of")
        return Free(
            self._place(clause.args.get("range")),
            self._place(as_of) if isinstance(as_of, exp.Literal) else None,
            None if limit is None else self._place(limit.expression),
            tuple(keys),
        )

    def _place(self, node: exp.Expr | None) -> int | None:
        """Which word is all of a constant."""
        place = None if node is None else self.places.get(node.meta_get("start"))
        if place is None or self.tokens[place].token_type not in CONSTANTS:
            return None
        # INTERVAL '5' MINUTE is one extent of several words.
        written = self.tokens[place].text
        return place if str(node.this) == written else None  # type: ignore[union-attr]

    def _equalities(self, where: exp.Expr) -> Iterator[tuple[int, str]]:
        for each in conjuncts(where):
            pair = equality(each)
            place = None if pair is None else self._place(pair[1])
            if pair is not None and place is not None:
                yield place, pair[0].name


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that must all hold for a condition to."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def equality(node: exp.Expr) -> tuple[exp.Column, exp.Literal] | None:
    """The column and the constant of ``column = constant``."""
    if not isinstance(node, exp.EQ):
        return None
    sides = (node.this, node.expression)
    for column, constant in (sides, sides[::-1]):
        if isinstance(column, exp.Column) and isinstance(constant, exp.Literal):
            return column, constant
    return None


def _instant(clause: WindowClause) -> tuple[AsOf, str | int | None]:
    as_of = clause.args.get("as_of")
    if as_of is None or as_of.name == "LATEST":
        return "latest", None
    if isinstance(as_of, exp.Var):
        return "watermark", None
    return "at", as_of.name if as_of.is_string else instant_number(as_of.name)


def instant_number(text: str) -> int | str:
    """A number as it is written; text where it is not a whole one."""
    number = whole_number(text.removeprefix("-"))
    if number is None:
        return text
    return -number if text.startswith("-") else number


def whole_number(text: str) -> int | None:
    """A number of digits, as many as a window may have; None for anything else."""
    is_plain = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if is_plain else None
