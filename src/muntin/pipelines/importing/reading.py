"""From the text of a foreign file to its statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from muntin.pipelines.importing.grammar import FlinkTokens, ForeignGrammar
from muntin.pipelines.importing.notes import Notes
from muntin.pipelines.importing.statements import ForeignNode, ForeignStatement
from muntin.queries.depth import deep_stack
from muntin.queries.dialect import Muntin, strip_comments
from muntin.queries.secrets import masked
from muntin.queries.source import Lines
from muntin.queries.statement_reader import StatementReader
from muntin.queries.syntax import explain_token_error

Dialect: TypeAlias = Literal["spark", "flink"]
_FLINK_WORDS = {"WATERMARK", "DESCRIPTOR", "HOP", "TUMBLE", "CUMULATE", "METADATA", "CONNECTOR"}
_SPARK_WORDS = {"USING", "TBLPROPERTIES", "OPTIONS", "SESSION_WINDOW", "WINDOW"}


@dataclass
class Entry:
    """One statement of the file: what it says, and what becomes of it.

    Attributes:
        foreign: What it says; None if it could not be read.
        original: Its text.
        comments: Those that stand before it.
        texts: The statements it becomes.
        settled: Whether nothing stands for it, and that is as it should be.
    """

    foreign: ForeignStatement | None
    original: str
    comments: list[str]
    texts: list[str] = field(default_factory=list)
    settled: bool = False


def tokens_of(text: str, dialect: Dialect) -> tuple[list[Token], TokenError | None]:
    """The words of a text, up to where it cannot be cut into words."""
    reader = (FlinkTokens() if dialect == "flink" else Muntin()).tokenizer()
    try:
        return reader.tokenize(text), None
    except TokenError as error:
        return reader.tokens, error


def detect(text: str) -> Dialect:
    """Whose SQL a text is, by words that only one of the two has; Spark's if there are none.

    >>> detect("SELECT count(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES))")
    'flink'
    >>> detect("SELECT window.start, count(*) FROM t GROUP BY window(ts, '5 minutes')")
    'spark'
    """
    words = [token.text.upper() for token in tokens_of(text, "spark")[0]]
    flink = sum(word in _FLINK_WORDS for word in words)
    return "flink" if flink > sum(word in _SPARK_WORDS for word in words) else "spark"


def read_entries(text: str, dialect: Dialect) -> tuple[list[Entry], Notes]:
    """The statements of a text, and notes of those that cannot be read.

    Secrets are starred out of what is shown, comments among it.
    """
    tokens, failed = tokens_of(text, dialect)
    shown = masked(text)
    notes = Notes(Lines(shown))
    entries: list[Entry] = []
    grammar = ForeignGrammar(dialect=FlinkTokens() if dialect == "flink" else Muntin())
    chunks = _split(tokens)
    lines = Lines(text)
    with deep_stack():
        for number, chunk in enumerate(chunks):
            notes.statement = number
            broken = failed is not None and number == len(chunks) - 1
            comments = [line for part in chunk[0].comments for line in masked(part).split("\n")]
            _note_hints(chunk, notes)
            foreign = None if broken else _read(lines, grammar, chunk, notes)
            end = len(text) if broken else chunk[-1].end + 1
            original = shown[chunk[0].start : end].rstrip()
            entries.append(Entry(foreign, original, [line.strip() for line in comments]))
    if failed is not None:
        notes.statement = len(entries) - 1
        notes.take(explain_token_error(text, tokens))
    return entries, notes


def _read(
    lines: Lines, grammar: ForeignGrammar, chunk: list[Token], notes: Notes
) -> ForeignStatement | None:
    reader = StatementReader(lines, grammar, strip_comments(chunk))
    node: exp.Expr | None = reader.parse()
    for problem in reader.report.problems:
        notes.take(problem)
    if not isinstance(node, ForeignNode):
        return None
    statement: ForeignStatement = node.args["this"]
    return statement


def _note_hints(chunk: list[Token], notes: Notes) -> None:
    """Hints to an optimizer, or with options of a table, look like comments here."""
    for token in chunk:
        if any(comment.startswith("+") for comment in token.comments):
            hint = "write options into CREATE TABLE before the import"
            notes.add(token.start, "a hint /*+ ... */ is left out", hint)


def _split(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]
