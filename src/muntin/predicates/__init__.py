"""Predicates in normal form: ranks of expressions, cells, shapes, signatures, fragments."""

from muntin.predicates.analysis import Analysis, Analyzer, Predicate, analyze, conjunction
from muntin.predicates.dimension import Ranked
from muntin.predicates.merge import Merged, expected_cells, merge_shapes
from muntin.predicates.regions import Region
from muntin.predicates.shape import Cells, Fragments, Shape

__all__ = [
    "Analysis",
    "Analyzer",
    "Cells",
    "Fragments",
    "Merged",
    "Predicate",
    "Ranked",
    "Region",
    "Shape",
    "analyze",
    "conjunction",
    "expected_cells",
    "merge_shapes",
]
