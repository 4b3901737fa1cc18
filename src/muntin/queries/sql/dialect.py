"""The SQL that Muntin reads: Spark's, with windows in three spellings and its own statements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.tokenizer_core import Token, TokenizerCore, TokenType
from sqlglot.tokens import Tokenizer

from muntin.queries.sql.grammar import EMIT_EMPTY, Grammar
from muntin.queries.sql.scanner import Found, Scanner

# WINDOW is a function here and no clause; optimizer hints are read as comments.
_DROPPED_KEYWORDS = {"WINDOW", "/*+"}
if not str(parser.__file__).endswith(".py"):
    raise ImportError(
        "sqlglotc is installed, and its compiled classes cannot be extended by Muntin's SQL: "
        "remove it with pip uninstall sqlglotc, then pip install --force-reinstall sqlglot"
    )
# What is known of words, by the class of the tokenizer that found them.
_known: dict[type[Tokenizer], dict[str, Found]] = {}
_CLAUSE_WORDS = {"DESCRIPTOR", "EMIT", "EMPTY", "OFFSET", "SLIDE", "WATTR", "WINDOW"}


class Muntin(Spark):
    """Spark's dialect of sqlglot, extended.

    >>> [token.text for token in Muntin().tokenize("FROM s [RANGE 5]")]
    ['FROM', 's', '[', 'RANGE', '5', ']']
    """

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens, and EMIT EMPTY as one keyword."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{
                word: kind
                for word, kind in Spark.Tokenizer.KEYWORDS.items()
                if word not in _DROPPED_KEYWORDS
            },
            "EMIT EMPTY": EMIT_EMPTY,
        }
        # Commands would swallow the rest of the text unread.
        COMMANDS: ClassVar[set[TokenType]] = set()

        def _init_core(self) -> TokenizerCore:
            return Scanner(super()._init_core(), _known.setdefault(type(self), {}))

    class Generator(SparkGenerator):
        """Spark's text, with NOT and FILTER where people write them, and 5L as it is."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **SparkGenerator.TRANSFORMS,
            exp.TryCast: lambda self, node: (
                f"{node.this.name}{node.args['suffix']}"
                if node.args.get("suffix")
                else SparkGenerator.TRANSFORMS[exp.TryCast](self, node)
            ),
        }

        def not_sql(self, expression: exp.Not) -> str:
            """A negation: x IS NOT NULL, x NOT IN (...), or NOT before all else."""
            inner = expression.this
            words = {exp.Is: " IS", exp.In: "", exp.Between: "", exp.Like: "", exp.ILike: ""}
            infix, text = words.get(type(inner)), self.sql(inner)
            left = self.sql(inner, "this") if infix is not None else ""
            if infix is None or not text.startswith(f"{left}{infix} "):
                return f"NOT {text}"
            return f"{left}{infix} NOT{text[len(left) + len(infix) :]}"

        def identifier_sql(self, expression: exp.Identifier) -> str:
            """A name; without quotes there is nothing to escape."""
            return super().identifier_sql(expression) if expression.quoted else expression.name

        def filter_sql(self, expression: exp.Filter) -> str:
            """A call with its FILTER clause."""
            condition = self.sql(expression.expression, "this")
            return f"{self.sql(expression, 'this')} FILTER (WHERE {condition})"

    Parser = Grammar


def tokenizer() -> Tokenizer:
    """A tokenizer, which keeps the tokens it found when it fails."""
    return Muntin().tokenizer()


def strip_comments(tokens: list[Token]) -> list[Token]:
    """The tokens without their comments, which sqlglot would otherwise read instructions from."""
    for token in tokens:
        token.comments = []
    return tokens


@cache
def is_reserved(name: str) -> bool:
    """Whether a name must be quoted because it is a word of the language."""
    word = name.upper()
    return (
        word in Muntin.Tokenizer.KEYWORDS
        or word in Grammar.NO_PAREN_FUNCTION_PARSERS
        or word in _CLAUSE_WORDS
    )
