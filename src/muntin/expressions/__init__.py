"""SQL expressions bound to a schema and evaluated on Arrow batches, as Spark 4 would."""

from muntin.expressions.binding.bound import Bound, bind, bind_text, subexpression
from muntin.expressions.evaluation.evaluator import Evaluated, Evaluator
from muntin.expressions.tree import BindingError

__all__ = ["BindingError", "Bound", "Evaluated", "Evaluator", "bind", "bind_text", "subexpression"]
