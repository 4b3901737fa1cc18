"""Synthetic trades from Spark's rate source: a row's columns follow from its number and a seed."""

from __future__ import annotations

from typing import Any

# Half of all trades have a volume of 100, and some volumes are common, as on an exchange.
_VOLUMES = (200, 300, 500, 400, 1000, 600, 700, 800, 900, 2000, 1500, 5000, 10_000, 3000)
_EXCHANGES = ("N", "P", "Q", "T", "Z")
_STEPS = 1 << 30


def trades(numbered: Any, *, symbols: int, seed: int) -> Any:
    """Trades for the rows of a DataFrame with ``timestamp`` and ``value``, as the rate source has.

    Symbols are skewed, so that the first are the busiest. Prices walk in whole cents within four
    dollars of their symbol's own. The same seed gives the same trades.
    """
    place = f"least(CAST(pow({symbols + 1}, {_uniform(seed, 0)}) AS INT), {symbols})"
    placed = numbered.selectExpr("timestamp AS ts", "value", f"{place} AS place")
    return placed.selectExpr(
        "ts",
        f"{_letters('place', symbols)} AS symbol",
        "(2000 + 1000 * (place % 18) + abs((value DIV 16 + 37 * place) % 800 - 400)) / 100D"
        " AS price",
        f"{_volume(seed)} AS vol",
        f"{_pick(_EXCHANGES, _uniform(seed, 3))} AS exchange",
    )


def _uniform(seed: int, part: int) -> str:
    """A number from 0 up to 1 that looks drawn at random, for each row."""
    return f"(pmod(xxhash64(value, {seed}, {part}), {_STEPS}) / {_STEPS}D)"


def _volume(seed: int) -> str:
    kind, size = _uniform(seed, 1), _uniform(seed, 2)
    odd = f"1 + CAST(-2000 * ln(1 - {size}) AS BIGINT)"
    common = _pick(_VOLUMES, size)
    return f"CASE WHEN {kind} < 0.5 THEN 100L WHEN {kind} < 0.9 THEN {common} ELSE {odd} END"


def _pick(choices: tuple[str, ...] | tuple[int, ...], uniform: str) -> str:
    listed = ", ".join(f"'{one}'" if isinstance(one, str) else f"{one}L" for one in choices)
    return f"element_at(array({listed}), 1 + CAST({uniform} * {len(choices)} AS INT))"


def _letters(number: str, most: int) -> str:
    """A, B, ..., Z, AA, AB, ... for 1, 2, ... up to the most, as spreadsheets name columns.

    >>> _letters("n", 26)
    'char(65 + (n - 1) % 26)'
    """
    last = f"char(65 + ({number} - 1) % 26)"
    if most <= 26:
        return last
    rest = f"(({number} - 1) DIV 26)"
    return f"concat(if({rest} > 0, {_letters(rest, (most - 1) // 26)}, ''), {last})"
