"""From SQL text to statements, with every problem of every statement found in one go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem, QueryError
from muntin.queries.analysis.templates import Templates
from muntin.queries.asking.keeps import CreateKeep, DropKeep
from muntin.queries.catalog import (
    CreateQuery,
    CreateRows,
    DropQuery,
    FileStatement,
    ParsedFile,
    Statement,
)
from muntin.queries.reader import QueryNames, StatementReader
from muntin.queries.source import Lines, check_text
from muntin.queries.sql.depth import deep_stack
from muntin.queries.sql.dialect import Muntin, strip_comments, tokenizer
from muntin.queries.sql.files import FileGrammar
from muntin.queries.sql.grammar import Grammar
from muntin.queries.sql.keeps import OnlyKeepGrammar
from muntin.queries.sql.normalize import normalize
from muntin.queries.sql.refusals import explain_token_error


def parse(
    text: str,
    first: int = 1,
    taken: Collection[str] = (),
    templates: Templates | None = None,
) -> list[Statement]:
    """The statements of a text, which semicolons separate.

    A SELECT on its own is named q1, q2, ... by its position among the statements, where ``first``
    is the number of the first one; or by the next number that leaves a name free, which are those
    that neither the text gives nor ``taken`` has. ``templates`` are what is known of queries in
    texts before.

    Raises:
        QueryError: With all problems of all statements.

    >>> parse("SELECT count(*) AS n FROM trades [RANGE '1 hour']; DROP QUERY old")[1]
    DropQuery(name='old')
    """
    tokens, problems = _tokens(check_text(text, "SQL text"))
    grammar = Grammar(dialect=Muntin())
    statements = _read(text, tokens, problems, grammar, first, taken, templates)
    if problems:
        raise QueryError(sorted(problems, key=_place))
    return [one for one in statements if isinstance(one, CreateQuery | CreateRows | DropQuery)]


def parse_file(text: str) -> ParsedFile:
    """The statements of a SQL file, and all problems of those that cannot be read.

    The query of INSERT INTO is named after its sink; where the file has a query of that name, by
    the next of ``sink_2``, ``sink_3``, ... that is free.

    >>> file = parse_file("CREATE SINK s WITH (format = 'console'); CREATE STREAM trades")
    >>> len(file.statements), file.names["STREAM"]
    (1, {'trades': 'trades'})
    >>> print(file.problems[0].message)
    expected WITH and its options
    """
    tokens, problems = _tokens(check_text(text, "SQL text"))
    statements = _read(text, tokens, problems, FileGrammar(dialect=Muntin()), 1, ())
    kinds = ("QUERY", "STREAM", "TABLE", "SINK")
    names = {kind: _given_names(tokens, kind) for kind in kinds}
    return ParsedFile(tuple(statements), tuple(sorted(problems, key=_place)), names)


def _place(problem: Problem) -> tuple[int, int]:
    return problem.line, problem.column


def _read(
    text: str,
    tokens: list[Token],
    problems: list[Problem],
    grammar: Grammar,
    first: int,
    taken: Collection[str],
    templates: Templates | None = None,
) -> list[FileStatement]:
    """The statements that can be read; adds what is wrong with the others to the problems."""
    statements: list[FileStatement] = []
    names = QueryNames({*_given_names(tokens), *(name.lower() for name in taken)})
    lines = Lines(text)
    templates = Templates() if templates is None else templates
    with deep_stack():
        for number, chunk in enumerate(_split(tokens, whole=not problems), first):
            reader = StatementReader(lines, grammar, chunk, templates)
            statement = reader.read(names, number)
            problems += reader.report.problems
            if statement is not None:
                statements.append(statement)
    return statements


def parse_keeps(text: str) -> list[CreateKeep | DropKeep]:
    """The keeps that a text creates and drops.

    Raises:
        QueryError: With all problems of all statements.

    >>> parse_keeps("DROP KEEP recent")
    [DropKeep(name='recent')]
    """
    tokens, problems = _tokens(check_text(text, "SQL text"))
    statements = _read(text, tokens, problems, OnlyKeepGrammar(dialect=Muntin()), 1, ())
    if problems:
        raise QueryError(sorted(problems, key=_place))
    return [one for one in statements if isinstance(one, CreateKeep | DropKeep)]


def parse_expression(text: str) -> exp.Expr:
    """One expression, such as ``sum(price * vol)``, read and normalised as in a query.

    >>> from muntin.queries.sql.normalize import canonical_text
    >>> canonical_text(parse_expression("((SUM( price*`vol` )))"))
    'sum(price * vol)'
    """
    tokens, problems = _tokens(check_text(text, "an expression"))
    reader = StatementReader(Lines(text), Grammar(dialect=Muntin()), tokens)
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
    return set(_given_names(_tokens(text)[0]))


def _given_names(tokens: Sequence[Token], kind: str = "QUERY") -> dict[str, str]:
    """Every word behind CREATE QUERY or CREATE OR REPLACE QUERY, by its lower case."""
    kinds = [token.token_type for token in tokens[:-2]]
    places = sorted([*_places(kinds, TokenType.CREATE), *_places(kinds, TokenType.REPLACE)])
    names = [tokens[place + 2].text for place in places if tokens[place + 1].text.upper() == kind]
    return {name.lower(): name for name in names}


def _places(kinds: Sequence[TokenType], wanted: TokenType) -> Iterator[int]:
    """Where tokens of one kind stand."""
    place = -1
    with suppress(ValueError):
        while True:
            place = kinds.index(wanted, place + 1)
            yield place


def _split(tokens: list[Token], whole: bool) -> list[list[Token]]:
    """The tokens of each statement; the last one is left out where the text broke off."""
    kinds = [token.token_type for token in tokens]
    bounds = [-1, *_places(kinds, TokenType.SEMICOLON), len(tokens)]
    chunks = [tokens[low + 1 : high] for low, high in pairwise(bounds)]
    if not whole:
        chunks.pop()
    return [chunk for chunk in chunks if chunk]
