"""Hops between packages: calls from a function of one package of Muntin into another's.

Counted over a warm ``aggregate`` of 2,000 rows with two queries. Many hops mean that a reader who
follows the data changes folders often. Run it as ``python -m muntin_bench.hops``.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import muntin
from muntin.testing import trades

QUERIES = """
CREATE QUERY volume AS SELECT symbol, sum(vol) AS vol
  FROM trades [RANGE '10 minutes' SLIDE '1 minute'] WHERE price > 50 GROUP BY symbol;
CREATE QUERY average AS SELECT avg(price) AS price
  FROM trades [RANGE '5 minutes' SLIDE '1 minute'] WHERE vol > 100;
"""


# Values are made, hashed and compared by these; no reader follows such a call.
_OF_VALUES = {"__init__", "__hash__", "__eq__"}


def hops() -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """Calls between packages and between modules, by caller and callee.

    The last number is how many of those between packages only make, hash or compare a value.
    """
    data = trades(2_000)
    muntin.aggregate(data, QUERIES, time="ts")
    packages: Counter[tuple[str, str]] = Counter()
    modules: Counter[tuple[str, str]] = Counter()
    values: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        caller = str(frame.f_back.f_globals.get("__name__", ""))
        callee = str(frame.f_globals.get("__name__", ""))
        if not (caller.startswith("muntin.") and callee.startswith("muntin.")):
            return
        if caller != callee:
            modules[caller, callee] += 1
        if _package(caller) != _package(callee):
            packages[_package(caller), _package(callee)] += 1
            values[frame.f_code.co_name] += frame.f_code.co_name in _OF_VALUES

    sys.setprofile(count)
    try:
        muntin.aggregate(data, QUERIES, time="ts")
    finally:
        sys.setprofile(None)
    return packages, modules, values.total()


def _package(module: str) -> str:
    return module.split(".")[1]


def main() -> None:
    """Print the totals, and who calls whom most."""
    packages, modules, values = hops()
    touched = {name for pair in modules for name in pair}
    print(f"{packages.total():,} hops between packages, {values:,} of which make or compare values")
    print(f"{modules.total():,} hops between {len(touched)} modules")
    for (caller, callee), calls in packages.most_common(20):
        print(f"{calls:>6,}  {caller} -> {callee}")


if __name__ == "__main__":
    main()
