"""docs/sql-files.md: its SQL is sound, and no option is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muntin.pipelines import PipelineError, read
from muntin.pipelines.options import KAFKA_OPTIONS, OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "sql-files.md").read_text()
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text[:30])
def test_examples_are_sound(text: str) -> None:
    assert read(text, {"folder": "/data", "broker": "localhost:9092"}).streams


def test_the_mistake_that_is_shown() -> None:
    (shown,) = (text for text in PAGE.split("```")[1::2] if "prise" in text)
    broken = EXAMPLES[0].replace("sum(price * vol)", "sum(prise * vol)")
    with pytest.raises(PipelineError) as caught:
        read(broken, {"folder": "/data"})
    assert str(caught.value).replace("text:", "trades.sql:") == shown.strip("\n")


def test_every_format_and_option_is_documented() -> None:
    for formats in OPTIONS.values():
        for form, rules in formats.items():
            assert f"`{form}`" in PAGE
            missing = [name for name in rules if f"`{name}`" not in PAGE]
            assert [name for name in missing if name not in KAFKA_OPTIONS] == []
