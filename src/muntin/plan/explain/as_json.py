"""The plan as JSON, for machines: every query and every number, under keys that stay."""

from __future__ import annotations

import json
from typing import Any

from muntin.plan.explain.model import Item

# Raised when a key changes its meaning or goes; keys may be added.
VERSION = 1


def item_json(item: Item) -> str:
    """A rendered plan as a JSON text.

    Each item is an object with ``id``, ``kind``, ``label``, ``facts``, ``notes``, ``sources`` (the
    ids of what feeds it) and ``children``. The outermost also has the ``version`` of the format.
    """
    return json.dumps({"version": VERSION, **_object(item)}, ensure_ascii=False, indent=2)


def _object(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "label": item.label,
        "facts": {fact.key: fact.value for fact in item.facts},
        "notes": item.notes,
        "sources": item.sources,
        "children": [_object(child) for child in item.children],
    }
