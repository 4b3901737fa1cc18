"""The stored answers of Spark are Spark's answers."""

from __future__ import annotations

import os
from typing import Any

from expressions import conformance
from spark.live_expressions import answers


def test_golden_file_is_what_spark_says(spark: Any) -> None:
    """Set MUNTIN_UPDATE_GOLDEN=1 to store the answers instead of comparing them."""
    live = answers(spark, list(conformance.cases()))
    if os.environ.get("MUNTIN_UPDATE_GOLDEN"):
        conformance.save_golden(live)
    stored = conformance.load_golden()
    assert list(stored) == list(live), "the table changed: set MUNTIN_UPDATE_GOLDEN=1 and run again"
    found = {
        text: conformance.differences(stored[text], answer, ulps=conformance.ulps(text))
        for text, answer in live.items()
    }
    assert not {text: lines for text, lines in found.items() if lines}
