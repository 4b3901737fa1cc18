"""A seeded stream of synthetic trades, with the skew of real ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# Half of all trades have a volume of 100, and fifteen volumes make up nine tenths of them, as
# "On-the-Fly Sharing for Streamed Aggregation" reports of an exchange's trades.
_VOLUMES = (100, 200, 300, 500, 400, 1000, 600, 700, 800, 900, 2000, 1500, 5000, 10_000, 3000)
_OPENING = 1_381_152_600_000_000  # 2013-10-07 13:30 UTC
_EXCHANGES = ("N", "P", "Q", "T", "Z")


def trades(
    rows: int, *, seed: int = 0, symbols: int = 4, seconds: float = 3600, start: int = _OPENING
) -> pa.Table:
    """Trades in time order.

    The columns are ``ts`` (UTC microseconds), ``symbol``, ``price``, ``vol`` and ``exchange``.
    Symbols are skewed as Zipf has it, prices walk at random in whole cents, and many trades
    share a timestamp.

    Args:
        rows: How many trades.
        seed: The same seed gives the same trades.
        symbols: How many different symbols.
        seconds: How long a time they cover.
        start: The time of the opening, in microseconds since the epoch.

    >>> trades(3, seed=1).column_names
    ['ts', 'symbol', 'price', 'vol', 'exchange']
    """
    random = np.random.default_rng(seed)
    offsets = np.sort(random.integers(0, int(seconds * 1000), rows)) * 1000
    weights = 1 / np.arange(1, symbols + 1)
    chosen = random.choice(symbols, rows, p=weights / weights.sum())
    base = 20 + 10 * (np.arange(symbols) % 18)
    # A walk that turns back at both ends of a range of four dollars.
    walk = np.abs(np.cumsum(random.integers(-1, 2, rows)) % 800 - 400)
    cents = base[chosen] * 100 + walk
    names = pa.array([_symbol(i) for i in range(symbols)])
    exchanges = pa.array(_EXCHANGES)
    return pa.table(
        {
            "ts": pa.array(start + offsets, pa.timestamp("us", "UTC")),
            "symbol": names.take(pa.array(chosen)),
            "price": pa.array(cents / 100),
            "vol": pa.array(_volumes(random, rows)),
            "exchange": exchanges.take(pa.array(random.integers(0, len(_EXCHANGES), rows))),
        }
    )


def _volumes(random: np.random.Generator, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    common = len(_VOLUMES) - 1
    weights = np.array([0.5, *(0.4 * (2 / (common * (common + 1))) * np.arange(common, 0, -1))])
    regular = np.array(_VOLUMES, np.int64)[
        random.choice(len(_VOLUMES), rows, p=weights / weights.sum())
    ]
    odd = random.geometric(1 / 2000, rows)
    return np.where(random.random(rows) < 0.9, regular, odd).astype(np.int64)


def _symbol(number: int) -> str:
    """A, B, ..., Z, AA, AB, ... as spreadsheets name their columns."""
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters
