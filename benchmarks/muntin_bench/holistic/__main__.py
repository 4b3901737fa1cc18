"""Parts of the benchmark by name: ``python -m muntin_bench.holistic distinct frequent``.

``--quick`` measures little, ``--no-spark`` leaves Spark out.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from rich.console import Console

from muntin_bench import progress
from muntin_bench.holistic.benchmark import FULL, PARTS, QUICK, run_at

if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if not name.startswith("--")]
    unknown = set(named) - set(PARTS)
    if unknown:
        sys.exit(f"there is no part {sorted(unknown)[0]}; there are {', '.join(PARTS)}")
    progress.begin(progress.Started("holistic", time.time()))
    scale = QUICK if "--quick" in sys.argv else FULL
    if "--no-spark" in sys.argv:
        scale = replace(scale, spark=False)
    report = run_at(scale, named or PARTS)
    report.show(Console())
