"""Reading one statement, with all that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as with_options
from itertools import count
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.aggregates.caps import Guarantees
from muntin.errors import MuntinError
from muntin.queries.analysis.rows import analyze_rows, is_row_query
from muntin.queries.analysis.select import analyze_window, checked_condition
from muntin.queries.analysis.templates import Templates
from muntin.queries.asking.keeps import (
    AnyKeep,
    CreateKeep,
    DropKeep,
    Keep,
    check_keep,
    read_options,
    read_row_keep,
)
from muntin.queries.catalog import CreateQuery, CreateRows, DropQuery, FileStatement
from muntin.queries.declarations import MAX_NAME, Reference, declare, reference
from muntin.queries.query import PREFERENCES
from muntin.queries.report import Report
from muntin.queries.rows import OUTPUTS, RowQuery
from muntin.queries.source import Lines, position, shown
from muntin.queries.sql.clauses import (
    CreateKeepNode,
    CreateQueryNode,
    CreateSinkNode,
    CreateSourceNode,
    DropKeepNode,
    DropQueryNode,
    InsertNode,
)
from muntin.queries.sql.depth import MAX_NESTING, MAX_WORDS, too_nested
from muntin.queries.sql.grammar import QUERY_OPTION_HINT, Grammar, RefusedError
from muntin.queries.sql.refusals import explain

NESTING_HINT = "flatten it, or split it into columns computed beforehand"
GUARANTEES = ("bounds", "on_cap", "cap_values", "cap_bytes")
OPTIONS = ("technique", "prefer", *GUARANTEES)
ROW_OPTIONS = ("output", "restore", "approximate", "skew", *GUARANTEES)
NAME_HINT = "write a name such as high_volume"
# Python refuses to read thousands of digits, and no type has more than this.
MAX_NUMBER = 400


def _guarantees(options: Mapping[str, Any]) -> Guarantees:
    """What options of WITH say of caps and bounds."""
    read: dict[str, Any] = {}
    for key in GUARANTEES:
        if key in options:
            text = options[key]
            plain = text if key == "on_cap" else text.lower() == "true"
            read[key] = int(text) if key.startswith("cap_") else plain
    return Guarantees(**read)


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of WITH as the fields of a query."""
    plain = {key: value for key, value in options.items() if key not in GUARANTEES}
    return {**plain, "guarantees": _guarantees(options)}


class QueryNames:
    """The names of a text's queries: those in use so far, and what a query without one is called.

    Args:
        given: Names in lower case that the text gives somewhere, or that are taken elsewhere.

    >>> names = QueryNames({"q1"})
    >>> names.numbered(1), names.after("Alerts"), names.after("Alerts")
    ('q2', 'Alerts', 'Alerts_2')
    """

    def __init__(self, given: Collection[str]) -> None:
        self.given = given
        self.used: set[str] = set()
        self._after: dict[str, count[int]] = {}

    def numbered(self, number: int) -> str:
        """The name of a SELECT on its own: q and its number, or the next that is free."""
        return next(name for name in map("q{}".format, count(number)) if self._is_free(name))

    def after(self, sink: str) -> str:
        """The name of a query that is inserted into a sink: sink, sink_2, ..."""
        numbers = self._after.setdefault(sink.lower(), count(1))
        names = (sink if number == 1 else f"{sink}_{number}" for number in numbers)
        return next(name for name in names if self._is_free(name))

    def _is_free(self, name: str) -> bool:
        return name.lower() not in self.given and name.lower() not in self.used


class StatementReader:
    """Reads one statement, and reports what is wrong with it.

    The grammar may be one that has read other statements: it starts anew with each. So may the
    templates: what they know of statements before need not be read again.
    """

    def __init__(
        self,
        lines: Lines,
        grammar: Grammar,
        tokens: list[Token],
        templates: Templates | None = None,
    ) -> None:
        self.lines = lines
        self.text = lines.text
        self.grammar = grammar
        self.tokens = tokens
        self.templates = Templates() if templates is None else templates
        start, end = (tokens[0].start, tokens[-1].end) if tokens else (0, 0)
        self.report = Report(lines.slice(start, end), None, start)

    def read(self, names: QueryNames, number: int) -> FileStatement | None:
        """The statement, or None after its problems are reported; ``number`` is its place."""
        known = self._known(names, number)
        if known is not None:
            return known
        node = self.parse()
        if node is None:
            return None
        if isinstance(node, DropQueryNode):
            names.used.discard(node.name.lower())
            sound = self._check_name(node.this)
            return DropQuery(node.name, position(node.this) or 0) if sound else None
        if isinstance(node, DropKeepNode):
            sound = self._check_name(node.this, "keep")
            return DropKeep(node.name, position(node.this) or 0) if sound else None
        if isinstance(node, CreateKeepNode):
            return self._keep(node)
        if isinstance(node, CreateSourceNode | CreateSinkNode):
            declared = declare(node, self.report)
            return None if self.report.problems else declared
        if isinstance(node, InsertNode):
            self._check_name(node.this)
            name = names.after(node.this.name)
            return self._query(name, node.expression, False, names, reference(node.this))
        if isinstance(node, CreateQueryNode):
            self._check_name(node.this)
            options = self._options(node)
            replaces = bool(node.args.get("replace"))
            return self._query(node.name, node.expression, replaces, names, options=options)
        return self._query(names.numbered(number), node, False, names)

    def parse(self, condition: bool = False) -> exp.Expr | None:
        """The syntax tree of the statement, or of an expression."""
        nested = too_nested(self.tokens)
        if nested is not None:
            message = f"more than {MAX_NESTING} levels of nesting"
            self.report.add_at(nested.start, message, NESTING_HINT)
            return None
        if len(self.tokens) > MAX_WORDS:
            message = f"a statement of more than {MAX_WORDS:,} words"
            hint = "split it up, or compute part of it as a column beforehand"
            self.report.add_at(self.report.start, message, hint)
            return None
        long = next((token for token in self.tokens if _is_long_number(token)), None)
        if long is not None:
            hint = f"numbers have at most {MAX_NUMBER} letters"
            self.report.add_at(long.start, "the number is too long", hint)
            return None
        try:
            read = self.grammar.condition if condition else self.grammar.statement
            return read(self.tokens, self.text)
        except RefusedError as error:
            self.report.add_at(*explain(error, self.tokens, self.grammar.STATEMENT_HINT))
        except RecursionError:
            self.report.add_at(self.report.start, "nested too deeply", NESTING_HINT)
        except Exception as error:
            # sqlglot slips on some text that is no SQL: a user's typo must not look like a crash.
            message = f"cannot be read: {shown(str(error)) or type(error).__name__}"
            self.report.add_at(self.report.start, message, "check the statement word by word")
        return None

    def _query(
        self,
        name: str,
        node: exp.Expr,
        replace: bool,
        names: QueryNames,
        sink: Reference | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> CreateQuery | CreateRows | None:
        self.report.query = name
        if name.lower() in names.used and not replace:
            self.report.add_at(
                self.report.start,
                f"there are two queries named {shown(name)}",
                "use another name: letter case makes no difference; or CREATE OR REPLACE QUERY",
            )
        names.used.add(name.lower())
        table = node.find(exp.Table)
        from_start = None if table is None else position(table.this)
        start = self.report.start
        if is_row_query(node):
            rows = self._row_query(name, node, dict(options or {}))
            place = start if from_start is None else from_start
            return None if rows is None else CreateRows(rows, replace, sink, start, place)
        found = analyze_window(node, name, self.report)
        if found is None or not self._takes(options or {}, OPTIONS, "aggregates"):
            return None
        query, clause = found
        head = _head(self.tokens)
        if options:
            query = with_options(query, **_arguments(options))
        elif head is not None:
            self.templates.learn(self.tokens[head:], query, clause, from_start)
        return CreateQuery(query, replace, sink, start, start if from_start is None else from_start)

    def _keep(self, node: CreateKeepNode) -> CreateKeep | None:
        """What is kept, or None after its problems are reported."""
        self._check_name(node.this, "keep")
        self.report.query = node.name
        table = node.expression.find(exp.Table)
        from_start = None if table is None else position(table.this)
        keep: AnyKeep | None
        if is_row_query(node.expression):
            keep = read_row_keep(node.expression, node.name, self.report)
            for each in (*node.args["cuts"], *node.args["options"]):
                self.report.add(each, "a keep of rows has neither CUT nor WITH", "leave it out")
        else:
            keep = self._slice_keep(node)
        if keep is None or self.report.problems:
            return None
        start, replaces = self.report.start, bool(node.args.get("replace"))
        return CreateKeep(keep, replaces, start, start if from_start is None else from_start)

    def _slice_keep(self, node: CreateKeepNode) -> Keep | None:
        found = analyze_window(node.expression, node.name, self.report)
        cuts = [checked_condition(cut, self.report) for cut in node.args["cuts"]]
        options = read_options(node.args["options"], self.report)
        if found is None or not check_keep(found[0], self.report) or self.report.problems:
            return None
        return Keep(found[0], tuple(cut for cut in cuts if cut is not None), *options)

    def _row_query(self, name: str, node: exp.Expr, options: dict[str, Any]) -> RowQuery | None:
        if not self._takes(options, ROW_OPTIONS, "rows with lifetimes"):
            return None
        for key in ("restore", "approximate"):
            if key in options:
                options[key] = options[key].lower() == "true"
        return analyze_rows(node, name, _arguments(options), self.report)

    def _takes(self, options: Mapping[str, Any], known: tuple[str, ...], what: str) -> bool:
        """Reports options that a query of this kind does not have."""
        others = [key for key in options if key not in known]
        if others:
            hint = f"leave it out; there are {', '.join(known[:-1])} and {known[-1]}"
            message = f"{others[0]} is not an option of a query over {what}"
            self.report.add_at(self.report.start, message, hint)
        return not others

    def _options(self, node: CreateQueryNode) -> dict[str, str]:
        """The options of WITH; whether a technique takes the query is for the planner to say."""
        options: dict[str, str] = {}
        for option in node.args.get("options") or ():
            key, value = option.this, option.args["value"]
            if key in options:
                self.report.add(option, f"{key} is given twice", QUERY_OPTION_HINT)
            elif key == "prefer" and value not in PREFERENCES:
                message = f"a query cannot prefer {shown(value)!r}"
                self.report.add(option, message, f"use {' or '.join(PREFERENCES)}")
            elif key == "output" and value not in OUTPUTS:
                message = f"there is no output {shown(value)!r}"
                self.report.add(option, message, f"use {' or '.join(OUTPUTS)}")
            elif key == "skew" and value != "replicate":
                message = f"there is no skew {shown(value)!r}"
                self.report.add(option, message, "use replicate, or leave it out")
            elif key in GUARANTEES:
                self._check_guarantee(option, key, value)
            elif key == "technique" and not _is_name(value):
                message = f"{shown(value)!r} is not the name of a technique"
                self.report.add(option, message, QUERY_OPTION_HINT)
            options[key] = value
        return options

    def _check_guarantee(self, option: exp.Expr, key: str, value: str) -> None:
        try:
            _guarantees({key: value})
        except MuntinError as error:
            self.report.add(option, error.message, error.hint or QUERY_OPTION_HINT)

    def _known(self, names: QueryNames, number: int) -> CreateQuery | None:
        """The query, if one that differs in constants only has been read before."""
        head = _head(self.tokens)
        body = self.tokens[head:]
        if head is None:
            return None
        name = self.tokens[head - 2].text if head else names.numbered(number)
        if not _is_name(name) or len(name) > MAX_NAME or name.lower() in names.used:
            return None
        known = self.templates.query(name, body, self.report.text, self._condition)
        if known is None:
            return None
        query, from_start = known
        names.used.add(name.lower())
        replaces = self.tokens[1].token_type == TokenType.OR
        return CreateQuery(query, replaces, None, self.report.start, from_start)

    def _condition(self, tokens: list[Token]) -> exp.Expr | None:
        """An expression of WHERE; None where something is wrong with it, which is told later."""
        reader = StatementReader(self.lines, self.grammar, tokens)
        node = reader.parse(condition=True)
        return None if node is None else checked_condition(node, reader.report)

    def _check_name(self, node: exp.Expr, what: str = "query") -> bool:
        name = node.name
        sound = _is_name(name)
        if not sound:
            message = (
                f"{shown(name)!r} is not a name for a {what}: ASCII letters, digits and _ only"
            )
            self.report.add(node, message, NAME_HINT)
        elif len(name) > MAX_NAME:
            # Names become names of files.
            self.report.add(node, f"a name of more than {MAX_NAME} letters", "shorten it")
        return sound and len(name) <= MAX_NAME


def _is_long_number(token: Token) -> bool:
    return token.token_type == TokenType.NUMBER and len(token.text) > MAX_NUMBER


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").isalnum()


def _head(tokens: Sequence[Token]) -> int | None:
    """How many words come before SELECT: none, or CREATE [OR REPLACE] QUERY name AS."""
    words = [token.text.upper() for token in tokens[:7]]
    for start in (["CREATE", "QUERY"], ["CREATE", "OR", "REPLACE", "QUERY"]):
        size = len(start) + 2
        named = tokens[len(start) : size]
        if words[: len(start)] == start and words[size - 1 : size + 1] == ["AS", "SELECT"]:
            return None if named[0].token_type == TokenType.STRING else size
    return 0 if words[:1] == ["SELECT"] else None
