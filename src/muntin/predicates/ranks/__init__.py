"""The rank of every value of an Arrow array among sorted cuts; importing it brings numba."""

from muntin.predicates.ranks.keys import append_digit, append_last
from muntin.predicates.ranks.ranker import Ranker
from muntin.predicates.ranks.types import ranker

__all__ = ["Ranker", "append_digit", "append_last", "ranker"]
