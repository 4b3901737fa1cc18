"""Docstrings as Markdown: examples become blocks of code, and names become links.

A griffe extension. The sources keep plain doctests and ``:class:`name` ``, which editors and
``help()`` show as they are.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?:^|(?<=\n\n))>>> .*?(?=\n\n|\Z)", re.DOTALL)
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")


class Docstrings(Extension):
    """Rewrites every docstring once it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object, if it has any."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """The docstring with its examples fenced, and its references as links where there is a page."""
    fenced = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", docstring)
    return _ROLE.sub(r'<autoref optional identifier="\1"><code>\1</code></autoref>', fenced)
