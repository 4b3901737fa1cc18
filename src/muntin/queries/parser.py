"""From SQL text to statements, with every problem of every statement found in one go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem, QueryError
from muntin.queries.analyze import analyze
from muntin.queries.clauses import CreateQueryNode, DropQueryNode
from muntin.queries.depth import MAX_NESTING, MAX_WORDS, deep_stack, too_nested
from muntin.queries.dialect import Muntin, strip_comments, tokenizer
from muntin.queries.grammar import Grammar, RefusedError
from muntin.queries.normalize import normalize
from muntin.queries.query import Query
from muntin.queries.report import Report
from muntin.queries.source import Lines, check_text, shown
from muntin.queries.syntax import explain, explain_token_error

NESTING_HINT = "flatten it, or split it into columns computed before"
NAME_HINT = "write a name such as high_volume"


@dataclass(frozen=True)
class CreateQuery:
    """CREATE [OR REPLACE] QUERY, or a SELECT on its own."""

    query: Query
    replace: bool = False


@dataclass(frozen=True)
class DropQuery:
    """DROP QUERY."""

    name: str


Statement: TypeAlias = CreateQuery | DropQuery


def parse(text: str, first: int = 1, taken: Collection[str] = ()) -> list[Statement]:
    """The statements of a text, which semicolons separate.

    A SELECT on its own is named q1, q2, ... by its position among the statements, where ``first``
    is the number of the first one; or by the next number that leaves a name free, which are those
    that neither the text gives nor ``taken`` has.

    Raises:
        QueryError: With all problems of all statements.

    >>> parse("SELECT count(*) AS n FROM trades [RANGE '1 hour']; DROP QUERY old")[1]
    DropQuery(name='old')
    """
    tokens, problems = _tokens(check_text(text, "SQL text"))
    statements: list[Statement] = []
    names: set[str] = set()
    given = _given_names(tokens).union(name.lower() for name in taken)
    lines, grammar = Lines(text), Grammar(dialect=Muntin())
    with deep_stack():
        for number, chunk in enumerate(_split(tokens, whole=not problems), first):
            reader = _Reader(lines, grammar, chunk)
            # Asked for by a SELECT on its own only: numbers that are taken are passed one by one.
            statement = reader.read(names, partial(_free_name, number, given, names))
            problems += reader.report.problems
            if statement is not None:
                statements.append(statement)
    if problems:
        raise QueryError(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return statements


def parse_expression(text: str) -> exp.Expr:
    """One expression, such as ``sum(price * vol)``, read and normalised as in a query.

    >>> from muntin.queries.normalize import canonical_text
    >>> canonical_text(parse_expression("((SUM( price*`vol` )))"))
    'sum(price * vol)'
    """
    tokens, problems = _tokens(check_text(text, "an expression"))
    reader = _Reader(Lines(text), Grammar(dialect=Muntin()), tokens)
    with deep_stack():
        node = reader.parse(condition=True) if not problems else None
        problems += reader.report.problems
        if node is None or problems:
            raise QueryError(problems)
        return normalize(node)


def _tokens(text: str) -> tuple[list[Token], list[Problem]]:
    reader = tokenizer()
    try:
        return strip_comments(reader.tokenize(text)), []
    except TokenError:
        tokens = strip_comments(reader.tokens)
        return tokens, [explain_token_error(text, tokens)]


def given_names(text: str) -> set[str]:
    """The names that a text gives to queries, in lower case; those that can be read."""
    return _given_names(_tokens(text)[0])


def _given_names(tokens: Sequence[Token]) -> set[str]:
    """Every word behind CREATE QUERY or CREATE OR REPLACE QUERY."""
    return {
        name.text.lower()
        for before, word, name in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if before.token_type in (TokenType.CREATE, TokenType.REPLACE)
        and word.text.upper() == "QUERY"
    }


def _free_name(number: int, *taken: Collection[str]) -> str:
    while any(f"q{number}" in names for names in taken):
        number += 1
    return f"q{number}"


def _split(tokens: list[Token], whole: bool) -> list[list[Token]]:
    """The tokens of each statement; the last one is left out where the text broke off."""
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    if not whole:
        chunks.pop()
    return [chunk for chunk in chunks if chunk]


class _Reader:
    """Reads one statement, and reports what is wrong with it.

    The grammar may be one that has read other statements: it starts anew with each.
    """

    def __init__(self, lines: Lines, grammar: Grammar, tokens: list[Token]) -> None:
        self.text = lines.text
        self.grammar = grammar
        self.tokens = tokens
        start, end = (tokens[0].start, tokens[-1].end) if tokens else (0, 0)
        self.report = Report(lines.slice(start, end), None, start)

    def read(self, names: set[str], default: Callable[[], str]) -> Statement | None:
        """The statement, or None after its problems are reported; keeps track of names taken."""
        node = self.parse()
        if node is None:
            return None
        if isinstance(node, DropQueryNode):
            names.discard(node.name.lower())
            return DropQuery(node.name) if self._check_name(node.this) else None
        if isinstance(node, CreateQueryNode):
            self._check_name(node.this)
            return self._query(node.name, node.expression, bool(node.args.get("replace")), names)
        return self._query(default(), node, False, names)

    def parse(self, condition: bool = False) -> exp.Expr | None:
        """The syntax tree of the statement, or of an expression."""
        nested = too_nested(self.tokens)
        if nested is not None:
            message = f"more than {MAX_NESTING} levels of nesting"
            self.report.add_at(nested.start, message, NESTING_HINT)
            return None
        if len(self.tokens) > MAX_WORDS:
            message = f"a statement of more than {MAX_WORDS:,} words"
            hint = "split it up, or compute a part of it into a column before"
            self.report.add_at(self.report.start, message, hint)
            return None
        try:
            read = self.grammar.condition if condition else self.grammar.statement
            return read(self.tokens, self.text)
        except RefusedError as error:
            self.report.add_at(*explain(error, self.tokens))
        except RecursionError:
            self.report.add_at(self.report.start, "nested too deeply", NESTING_HINT)
        except Exception as error:
            # sqlglot slips on some text that is no SQL: a user's typo must not look like a crash.
            message = f"cannot be read: {shown(str(error)) or type(error).__name__}"
            self.report.add_at(self.report.start, message, "check the statement word by word")
        return None

    def _query(
        self, name: str, node: exp.Expr, replace: bool, names: set[str]
    ) -> CreateQuery | None:
        self.report.query = name
        if name.lower() in names and not replace:
            self.report.add_at(
                self.report.start,
                f"there are two queries named {shown(name)}",
                "use another name: letter case makes no difference; or CREATE OR REPLACE QUERY",
            )
        names.add(name.lower())
        query = analyze(node, name, self.report)
        return CreateQuery(query, replace) if query is not None else None

    def _check_name(self, node: exp.Expr) -> bool:
        name = node.name
        sound = name.isascii() and name.replace("_", "a").isalnum()
        if not sound:
            message = f"{shown(name)!r} is no name for a query: letters, digits and _ only"
            self.report.add(node, message, NAME_HINT)
        return sound
