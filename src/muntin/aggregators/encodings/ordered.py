"""Least and greatest values as codes that compare like the values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.extremes import Max
from muntin.aggregators.encodings.encoding import Encoding, Values
from muntin.aggregators.operators import Least, Store


@dataclass(frozen=True)
class Ordered(Encoding):
    """The smallest code wins; the operator complements codes of a maximum. The largest is no value.

    `nullable` says that some partial may hold no value, so answers have to be looked at.
    """

    aggregate: Any
    double: bool
    nullable: bool = False

    @cached_property
    def op(self) -> Any:
        """A maximum turns the order around."""
        return Least(flip=-1 if isinstance(self.aggregate, Max) else 0)

    @property
    def no_value(self) -> int:
        """The code of no value, as it comes and as it is handed out."""
        return NOTHING ^ int(self.op.flip)

    def described(self) -> dict[str, Any]:
        """Whether answers may be NULL."""
        return {"nullable": self.nullable}

    def redescribed(self, said: dict[str, Any]) -> Ordered:
        """Take the description back."""
        return replace(self, **said)

    def covering(self, values: Values) -> Ordered | None:
        """None if a value has the very code that stands for no value."""
        wider = self if values.valid is None else replace(self, nullable=True)
        if self.double or len(values.items) == 0:
            return wider
        worst = values.items.min() if self.op.flip else values.items.max()
        return None if worst == self.no_value else wider

    @property
    def direct(self) -> bool:
        """A 64-bit integer is its own code."""
        return not (self.double or self.nullable) and bool(self.dtype == np.int64)

    def lift(self, values: Values, out: Store) -> Store:
        """Codes, or no value for NULL."""
        if self.double:
            to_codes(values.items, out)
        elif values.valid is None:
            return values.items
        else:
            out[:] = values.items
        if values.valid is not None:
            out[~values.valid] = self.no_value
        return out

    def lower(self, partials: Store, rows: Ints, out: npt.NDArray[Any]) -> Bools | None:
        """Values of the codes."""
        if not self.double:
            out[:] = partials
        elif out.dtype == np.float64:
            from_codes(partials, out.view(np.int64))
        else:
            wide = np.empty(len(out), np.int64)
            from_codes(partials, wide)
            out[:] = wide.view(np.float64)
        return partials == self.no_value if self.nullable else None

    def widened(self, store: Store, wider: Encoding, rows: Ints | None) -> Store:
        """There is one width."""
        return store

    def decoded(self, store: Store, rows: Ints | None) -> Store:
        """Python values, None for no value."""
        values: npt.NDArray[Any] = np.empty(len(store), self.dtype)
        nulls = replace(self, nullable=True).lower(store ^ self.op.flip, store, values)
        out = np.array(values.tolist(), np.object_)
        out[nulls] = None
        return out

    def of_partials(self, partials: Any) -> Ordered | None:
        """One encoding serves all, but for the value whose code stands for none."""
        known = [partial for partial in partials if partial is not None]
        return replace(self, nullable=True).covering(self._values(known))

    def encoded(self, partials: Store) -> Store:
        """Codes of Python values."""
        valid = np.array([partial is not None for partial in partials], np.bool_)
        filled = [0 if partial is None else partial for partial in partials]
        codes: Ints = np.empty(len(filled), np.int64)
        self.lift(self._values(filled)._replace(valid=valid), codes)
        return codes ^ int(self.op.flip)

    def _values(self, items: list[Any]) -> Values:
        if self.double:
            return Values(np.array(items, np.float64).view(np.int64), True, None)
        return Values(np.array(items, np.int64), False, None)


_SIZE = (1 << 63) - 1
_NAN = 0x7FF8 << 48
_INFINITY = 0x7FF0 << 48


@compiled
def to_codes(bits: Ints, out: Ints) -> None:
    """Codes of doubles: -0.0 before 0.0, all NaN equal and greatest."""
    for i in range(len(bits)):
        b = bits[i]
        code = b ^ ((b >> 63) & _SIZE)
        out[i] = _NAN if (b & _SIZE) > _INFINITY else code


@compiled
def from_codes(codes: Ints, out: Ints) -> None:
    """The bits of the doubles that have these codes."""
    for i in range(len(codes)):
        out[i] = codes[i] ^ ((codes[i] >> 63) & _SIZE)
