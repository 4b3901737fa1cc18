"""Two machine instructions that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

cgutils: Any = _cgutils
_BYTE = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of an item without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To read, kept in every level of the cache, data.
        builder.call(function, [address, *(_INT32(value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _leading_zeros(typing_context: Any, word: Any) -> Any:
    """How many zeros an unsigned word starts with; it is not zero."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


prefetch: Any = intrinsic(_prefetch)
leading_zeros: Any = intrinsic(_leading_zeros)
