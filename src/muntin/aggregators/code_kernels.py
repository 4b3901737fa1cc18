"""Loops that turn doubles into codes that compare as integers, and back."""

from __future__ import annotations

from muntin.aggregates.exact_kernels import Ints
from muntin.compiled import compiled

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
