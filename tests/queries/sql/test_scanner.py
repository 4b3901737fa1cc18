"""The scanner finds exactly the tokens of sqlglot's own tokenizer, in any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenizerCore
from sqlglot.tokens import Tokenizer

from muntin.pipelines.importers.grammar import FlinkTokens
from muntin.queries.sql.dialect import Muntin
from muntin.queries.sql.scanner import Scanner
from muntin_bench.planning import workloads

# Words, signs and numbers of every kind, and the beginnings of what never ends.
PIECES = [
    *("SELECT", "select", "FROM", "RANGE", "GROUP BY", "group \n by", "EMIT  EMPTY", "emit"),
    *("IS NOT NULL", "INTERVAL '5' MINUTE", "date", "div", "HOP", "x_1", "_", "q12", "a.b"),
    *("NOT", "é", "日本", "٣", "ⅷ", "'a b'", r"'it\'s'", "''", "'x''y'", "'two\nlines'", '"q"'),
    *("`id`", "`a``b`", "'", '"', "`", "\\", "-- c\n", "/* c */", "/*+ h */", "/* c\n */"),
    *("{# j #}", "--", "/*", "*/", "1", "0", "00", "23.5", "5.", ".5", "5.x", "a.1", "1e5"),
    *("1E-3", "1.5e+3", "1e", "5L", "5abc", "0x1F", "X'1F'", "n'x'", r"r'\n'", "0b1", "1_000"),
    *("-1", "$", "$1.5", "${a}", "@x", "@select", ":", "::", "<", "<=", "<=>", "<>", "!=", "=="),
    *("||", "|>", "->", "(", ")", "[", "]", ",", ";", "+", "-", "*", "/", "%", "#", "?", "{"),
    *("}", "~", "^", "&", "\x0b", "\u00a0", "\r\n", "\r"),
]
SEPARATORS = st.sampled_from(["", " ", " ", "  ", "\t", "\n", "\n\n  "])


@st.composite
def texts(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=20))
    return "".join(piece + draw(SEPARATORS) for piece in pieces)


def found(core: TokenizerCore, text: str) -> object:
    """Everything that a core says of a text."""
    failed = False
    try:
        core.tokenize(text)
    except TokenError:
        failed = True
    fields = ("token_type", "text", "line", "col", "start", "end", "comments")
    return failed, [tuple(getattr(token, field) for field in fields) for token in core.tokens]


def check(dialect: Muntin, text: str) -> None:
    reader = dialect.tokenizer()
    scanner = reader._core
    assert isinstance(scanner, Scanner)
    assert found(scanner, text) == found(Tokenizer._init_core(reader), text)


@settings(max_examples=400, deadline=None)
@given(texts())
def test_tokens_are_those_of_sqlglot(text: str) -> None:
    check(Muntin(), text)
    check(FlinkTokens(), text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-16", exclude_categories=()), max_size=40))
def test_any_text_at_all(text: str) -> None:
    check(Muntin(), text)


def test_generated_queries() -> None:
    for make in (workloads.thresholds, workloads.combinations, workloads.unlike):
        check(Muntin(), make(50))
    check(Muntin(), workloads.alternatives(500))
