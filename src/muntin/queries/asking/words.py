"""The words of a question: cut once for all texts that differ in constants."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, overload

from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import QueryError
from muntin.queries.source import check_text
from muntin.queries.sql.dialect import strip_comments, tokenizer
from muntin.queries.sql.refusals import explain_token_error

CONSTANTS = (TokenType.STRING, TokenType.NUMBER)


def words_of(text: str) -> list[Token]:
    """The words of a question."""
    reader = tokenizer()
    try:
        tokens = strip_comments(reader.tokenize(check_text(text, "a question")))
    except QueryError:
        raise
    except Exception as error:
        problem = explain_token_error(text, strip_comments(reader.tokens))
        raise QueryError([problem]) from error
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return tokens


class Constant(NamedTuple):
    """A word of a text that was not cut into words: its kind, and what it says."""

    token_type: TokenType
    text: str


Word: TypeAlias = Token | Constant


class QuickWords(Sequence[Word]):
    """Words of a text that differs from an earlier one in ``constants``: only these are made."""

    __slots__ = ("constants", "template")

    def __init__(self, template: Template, constants: list[str]) -> None:
        self.template, self.constants = template, constants

    def __len__(self) -> int:
        return len(self.template.words)

    @overload
    def __getitem__(self, place: int) -> Word: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Word]: ...
    def __getitem__(self, place: int | slice) -> Word | Sequence[Word]:
        template = self.template
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        number = template.numbers.get(place)
        if number is None:
            return template.words[place]
        return Constant(template.words[place].token_type, self.constants[number])


# Digits of other scripts are not numbers of SQL.
_LITERAL = re.compile(r"(?<!\w)'([^']*)'|(?<![\w.])([0-9]+)(?![\w.])")
# Words whose ends depend on more than themselves, and comments.
_ODD = re.compile(r"[\"'`?]|--|/\*")
_MOST_TEMPLATES = 512


@dataclass(frozen=True, eq=False)
class Template:
    """Texts that differ in constants: the words of the first one, and which constant is where.

    ``shape`` is what `shape_of` gives for them.
    """

    words: Sequence[Token]
    numbers: Mapping[int, int]
    shape: Shape


# By what stands between the constants, and which of these are numbers; None for texts whose
# constants cannot be told without cutting them into words.
_templates: dict[tuple[str | bool, ...], Template | None] = {}
# Those of texts whose constants are all between quotes, by what stands outside of them.
_quoted: dict[tuple[str, ...], Template] = {}


def quick_words_of(text: str) -> Sequence[Word]:
    """As `words_of`; where only constants are new, without cutting the text into words again.

    >>> first = quick_words_of("SELECT max(v) FROM s [RANGE 7] WHERE k = 'a'")
    >>> [word.text for word in quick_words_of("SELECT max(v) FROM s [RANGE 8] WHERE k = 'b'")[9:]]
    ['8', ']', 'WHERE', 'k', '=', 'b']
    """
    if not isinstance(text, str) or "\\" in text:
        return words_of(text)
    strings = text.split("'")
    quoted = _quoted.get(tuple(strings[::2]))
    if quoted is not None:
        return QuickWords(quoted, strings[1::2])
    pieces = _LITERAL.split(text)
    # A number and a string in one place are different questions.
    key = (*pieces[::3], *[each is None for each in pieces[1::3]])
    known = _templates.get(key)
    if known is None:
        return words_of(text) if key in _templates else _first_words(text, key, pieces)
    constants = _constants(pieces)
    if constants == strings[1::2]:
        if len(_quoted) >= _MOST_TEMPLATES:
            _quoted.clear()
        _quoted[tuple(strings[::2])] = known
    return QuickWords(known, constants)


def _constants(pieces: list[str]) -> list[str]:
    """The constants of a text that was split at them."""
    return [b if a is None else a for a, b in zip(pieces[1::3], pieces[2::3], strict=True)]


def _first_words(text: str, key: tuple[str | bool, ...], pieces: list[str]) -> list[Token]:
    """The words of a text, remembered for those that differ in constants."""
    words = words_of(text)
    places = [at for at, word in enumerate(words) if word.token_type in CONSTANTS]
    is_plain = [words[at].text for at in places] == _constants(pieces)
    if len(_templates) >= _MOST_TEMPLATES:
        _templates.clear()
    if is_plain and not any(map(_ODD.search, pieces[::3])):
        numbers = {at: number for number, at in enumerate(places)}
        _templates[key] = Template(words, numbers, shape_of(words))
    else:
        _templates[key] = None
    return words


class Shape:
    """All words of a question but the constants, of which only the kinds; hashed once."""

    __slots__ = ("_hash", "_words")

    def __init__(self, words: tuple[Hashable, ...]) -> None:
        self._words = words
        self._hash = hash(words)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Shape) and self._words == other._words)


def shape_of(tokens: Sequence[Word]) -> Shape:
    """What questions that differ in constants have in common."""
    if isinstance(tokens, QuickWords):
        return tokens.template.shape
    return Shape(
        tuple(
            [
                token.token_type
                if token.token_type in CONSTANTS
                else (token.token_type, token.text)
                for token in tokens
            ]
        )
    )
