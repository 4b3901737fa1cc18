"""Data for benchmarks: real trades where they are at hand, synthetic ones elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.testing import trades

DATA_VARIABLE = "MUNTIN_DATA"
_REAL = "us_trades_2013.parquet"
_ROWS = 2_800_000
_WEEK = 4.25 * 86_400


def real_trades() -> Path | None:
    """The file of real trades in the folder that ``MUNTIN_DATA`` names, if there is one."""
    folder = os.environ.get(DATA_VARIABLE)
    path = Path(folder, _REAL) if folder else None
    return path if path is not None and path.is_file() else None


def load_trades() -> tuple[str, pa.Table]:
    """What the trades are, and the trades: about 2.8 million over four days."""
    path = real_trades()
    if path is not None:
        return f"real trades ({path.name})", pq.read_table(path).combine_chunks()
    about = f"synthetic trades, seed 0 (set {DATA_VARIABLE} for real ones)"
    return about, trades(_ROWS, seconds=_WEEK)
