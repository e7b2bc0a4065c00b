"""Access to symbols of either width, and how functions within the merge kernel are compiled."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# For functions that only kernels call: without the wrappers for Python they compile sooner.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner: Callable[..., Any] = njit(nogil=True, **_NO_WRAPPERS)


def _width(unit):
    return ir.IntType(unit.bitwidth)


def _symbol_address(typing_context, symbols, index, unit):
    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], _width(signature.args[2]).as_pointer())
        return builder.ptrtoint(builder.gep(pointer, [arguments[1]]), ir.IntType(64))

    return types.int64(types.int64, types.int64, unit), generate


def _symbol_at(typing_context, symbols, index, unit):
    def generate(context, builder, signature, arguments):
        width = _width(signature.args[2])
        pointer = builder.inttoptr(arguments[0], width.as_pointer())
        value = builder.load(builder.gep(pointer, [arguments[1]]))
        return builder.zext(value, ir.IntType(64))

    return types.int64(types.int64, types.int64, unit), generate


def _set_symbol(typing_context, symbols, index, value, unit):
    def generate(context, builder, signature, arguments):
        width = _width(signature.args[3])
        pointer = builder.inttoptr(arguments[0], width.as_pointer())
        builder.store(builder.trunc(arguments[2], width), builder.gep(pointer, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, unit), generate


# The type of the scalar `unit`, uint16 or uint32, is that of the symbols.
symbol_address: Callable[..., Any] = intrinsic(_symbol_address)  # (address, index, unit) → int64
symbol_at: Callable[..., Any] = intrinsic(_symbol_at)  # (address, index, unit) → int64
set_symbol: Callable[..., Any] = intrinsic(_set_symbol)  # (address, index, value, unit)
