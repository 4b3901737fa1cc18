"""A small report with something of everything."""

from __future__ import annotations

import pytest

from muntin_bench.conditions import Conditions
from muntin_bench.measure import Timing
from muntin_bench.report import Check, Plot, Report, Section


@pytest.fixture
def tiny() -> Report:
    timed = (Timing("ours", (1.0, 1.1, 0.9)), Timing("theirs", (4.0, 4.2, 3.8)))
    return Report(
        "local",
        "made-up <rows>",
        timed,
        (Section("a | table", ("name", "value"), (("panes & pairs", "1"),), (timed,)),),
        (Check("held", 2, 1.5, low=1.4, high=1.6), Check("broken", 2, 2.5, " s", least=False)),
        (Plot("rate", "rates", "window", "steps", {"panes": ((1.0, 9.0), (2.0, 5.0))}),),
        seeds=(0, 7),
        conditions=Conditions(
            {"cpu": "an abacus", "cores": "2"},
            {"muntin": "1", "numpy": "2"},
            True,
            "2026-01-02T03:04:05+00:00",
            61.0,
        ),
    )
