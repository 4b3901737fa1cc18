"""Turn what a command wrote to a terminal into a picture: ``... | python screenshot.py OUT.svg``.

tmux new -d -s demo -x 80 -y 40 'muntin demo' && sleep 30
tmux capture-pane -ep -t demo | python docs/pictures/screenshot.py docs/pictures/demo.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def picture(ansi: str, title: str, width: int = 80) -> str:
    """The text, with its colours, as SVG."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi.rstrip()), soft_wrap=True)
    svg = console.export_svg(title=title)
    # A picture fetches nothing: the reader's own font for code will do.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(r"Fira Code", "ui-monospace, Menlo, Consolas", svg)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    shown = sys.stdin.read()
    width = max(80, *(len(Text.from_ansi(line)) for line in shown.splitlines()))
    out.write_text(picture(shown, f"muntin {out.stem}", width) + "\n")
