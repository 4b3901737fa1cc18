"""The code blocks of README and docs, and a way to run them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``line`` is that of its first line of code.

    Attributes:
        output: The block without a language right below, which shows what this one prints.
    """

    page: Path
    line: int
    language: str
    code: str
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    def run(self, scope: dict[str, Any]) -> str:
        """Run the code as Python; what it printed. Errors name the page and its lines."""
        placed = "\n" * (self.line - 1) + self.code
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(placed, str(self.page), "exec"), scope)
        return printed.getvalue()


def blocks(pages: Iterable[Path] = PAGES, *languages: str) -> list[Block]:
    """The blocks of some pages in some languages, or in all."""
    found = []
    for page in pages:
        text = page.read_text()
        fences = list(_FENCED.finditer(text))
        for fence, below in zip_longest(fences, fences[1:]):
            output = None
            if below is not None and not below[1] and not text[fence.end() : below.start()].strip():
                output = below[2]
            line = text.count("\n", 0, fence.start(2)) + 1
            if not languages or fence[1] in languages:
                found.append(Block(page, line, fence[1], fence[2], output))
    return found
