"""Python in the documentation runs, and every aggregate is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muntin import aggregates
from muntin.expressions.registry import functions

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_python_on_the_page_runs(page: Path) -> None:
    scope: dict[str, object] = {}
    for code in BLOCK.findall(page.read_text()):
        exec(compile(code, page.name, "exec"), scope)


@pytest.mark.parametrize(
    "page", sorted([*DOCS.glob("*.md"), *DOCS.parent.glob("*.md")]), ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_aggregate_is_documented() -> None:
    text = (DOCS / "aggregates.md").read_text()
    assert [name for name in aggregates.names() if f"`{name}" not in text] == []


def test_every_function_is_documented() -> None:
    text = (DOCS / "expressions.md").read_text()
    assert [name for name in functions() if f"`{name}`" not in text] == []
