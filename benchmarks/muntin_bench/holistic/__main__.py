"""Parts of the benchmark by name: ``python -m muntin_bench.holistic distinct frequent``."""

from __future__ import annotations

import sys
import time

from rich.console import Console

from muntin_bench import progress
from muntin_bench.holistic.benchmark import PARTS, run

if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name != "--quick"]
    unknown = set(named) - set(PARTS)
    if unknown:
        sys.exit(f"there is no part {sorted(unknown)[0]}; there are {', '.join(PARTS)}")
    progress.begin(progress.Started("holistic", time.time()))
    report = run(quick="--quick" in sys.argv, parts=named or PARTS)
    report.show(Console())
