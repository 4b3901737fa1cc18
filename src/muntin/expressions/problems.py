"""Errors of this package carry the SQL node they are about."""

from __future__ import annotations

from sqlglot import exp

from muntin.errors import ExpressionError


class BindingError(ExpressionError):
    """An expression that cannot be bound.

    `node` is the innermost SQL node at fault; its identifiers and literals know their position
    (`node.meta`: line, col, start, end).
    """

    def __init__(
        self, message: str, *, hint: str | None = None, node: exp.Expr | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.node = node
