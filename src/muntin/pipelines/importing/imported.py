"""What an import gives: the Muntin file, and what could not be carried over."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.pipelines.importing.notes import Note
from muntin.pipelines.importing.reading import Dialect
from muntin.pipelines.model import Pipeline


@dataclass(frozen=True)
class Imported:
    """A foreign file, translated.

    Attributes:
        text: The Muntin file, which ``pipelines.read`` accepts.
        notes: What could not be carried over, in the order of the foreign file.
        dialect: ``spark`` or ``flink``.
        file: The path of the foreign file; None for text.
        pipeline: What the Muntin file says.
    """

    text: str
    notes: tuple[Note, ...]
    dialect: Dialect
    file: str | None
    pipeline: Pipeline

    @property
    def lost(self) -> tuple[Note, ...]:
        """The notes of what answers may depend on."""
        return tuple(note for note in self.notes if note.lost)
