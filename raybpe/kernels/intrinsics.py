"""Machine operations that the kernels are written in: raw loads and stores, bit counts, masks.

Hot functions take no arrays, only int64 addresses; Python owns every array and keeps it alive for
the call (``address(array)``). Nothing here checks bounds: a load of n bytes needs n readable
bytes, whatever the alignment, and a vector mask reads 64.

Types: addresses, positions and small values are int64; masks, hashes and key words are uint64.
Mixing the two in one expression makes Numba fall back to float64, so convert with `as_i64` and
`as_u64`, which cost nothing, and write uint64 constants as ``np.uint64(...)``.

In a mask, bit i stands for byte i of the 64 loaded.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

intrinsic: Any = extending.intrinsic  # typed as Any, for it changes what callers pass

_I8 = ir.IntType(8)
_I64 = ir.IntType(64)
_BYTES64 = ir.VectorType(_I8, 64)


def _loader(bits: int, result: Any) -> Callable[..., Any]:
    """An unaligned load of `bits` bits, zero-extended."""

    def typed(typing_context, where):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 64 else builder.zext(value, _I64)

        return result(types.int64), generate

    return typed


def _storer(bits: int) -> Callable[..., Any]:
    """An unaligned store of the low `bits` bits."""

    def typed(typing_context, where, value):
        def generate(context, builder, signature, arguments):
            number = arguments[1]
            if bits < 64:
                number = builder.trunc(number, ir.IntType(bits))
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            builder.store(number, pointer, align=1)
            return context.get_dummy_value()

        kind = types.uint64 if value == types.uint64 else types.int64
        return types.void(types.int64, kind), generate

    return typed


load8 = intrinsic(_loader(8, types.int64))  # address → int64
load16 = intrinsic(_loader(16, types.int64))  # address → int64, little-endian
load32 = intrinsic(_loader(32, types.int64))  # address → int64, little-endian
load64 = intrinsic(_loader(64, types.uint64))  # address → uint64, little-endian
load_i64 = intrinsic(_loader(64, types.int64))  # address → int64
store8 = intrinsic(_storer(8))  # (address, value)
store16 = intrinsic(_storer(16))  # (address, value)
store32 = intrinsic(_storer(32))  # (address, value)
store64 = intrinsic(_storer(64))  # (address, value), value int64 or uint64


@intrinsic
def as_i64(typing_context, value):
    """The same 64 bits as int64."""

    def generate(context, builder, signature, arguments):
        return arguments[0]

    return types.int64(types.uint64), generate


@intrinsic
def as_u64(typing_context, value):
    """The same 64 bits as uint64."""

    def generate(context, builder, signature, arguments):
        return arguments[0]

    return types.uint64(types.int64), generate


@intrinsic
def ctz(typing_context, mask):
    """Index of the lowest set bit of a uint64; 64 for zero."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def clz(typing_context, mask):
    """Zero bits above the highest set bit of a uint64; 64 for zero."""

    def generate(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def popcount(typing_context, mask):
    """Number of set bits of a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context, where):
    """Ask for the cache line of an address, to be written; harmless for any address."""

    def generate(context, builder, signature, arguments):
        int32 = ir.IntType(32)
        pointer = _I8.as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [pointer],
            ir.FunctionType(ir.VoidType(), [pointer, int32, int32, int32]),
        )
        hints = [ir.Constant(int32, n) for n in (1, 3, 1)]  # write, keep in all caches, data
        builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def mum(typing_context, a, b):
    """Low half xor high half of the 128-bit product of two uint64: a fast mixing step."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)
        return builder.xor(builder.trunc(product, _I64), high)

    return types.uint64(types.uint64, types.uint64), generate


def _vector(builder, where):
    return builder.load(builder.inttoptr(where, _BYTES64.as_pointer()), align=1)


def _splat(value):
    return ir.Constant(_BYTES64, [ir.Constant(_I8, value)] * 64)


def _masks(context, builder, signature, vectors):
    """A tuple of uint64 from vectors of 64 one-bit truths."""
    words = [builder.bitcast(vector, _I64) for vector in vectors]
    return context.make_tuple(builder, signature.return_type, words)


@intrinsic
def classify64(typing_context, where):
    """Masks of 64 bytes: letters, digits, spaces (0x20), white (9–13, 0x20), apostrophes, high.

    Letters, digits and white are of ASCII only; high is bytes ≥ 0x80.
    """

    def generate(context, builder, signature, arguments):
        data = _vector(builder, arguments[0])

        def below(vector, first, count):
            return builder.icmp_unsigned("<", builder.sub(vector, _splat(first)), _splat(count))

        spaces = builder.icmp_unsigned("==", data, _splat(0x20))
        vectors = [
            below(builder.or_(data, _splat(0x20)), ord("a"), 26),
            below(data, ord("0"), 10),
            spaces,
            builder.or_(below(data, 9, 5), spaces),
            builder.icmp_unsigned("==", data, _splat(ord("'"))),
            builder.icmp_signed("<", data, _splat(0)),
        ]
        return _masks(context, builder, signature, vectors)

    return types.UniTuple(types.uint64, 6)(types.int64), generate


@intrinsic
def at_least64(typing_context, where, a, b, c):
    """Three masks of 64 bytes: byte ≥ a, byte ≥ b, byte ≥ c (unsigned)."""

    def generate(context, builder, signature, arguments):
        data = _vector(builder, arguments[0])
        vectors = [
            builder.icmp_unsigned(">=", data, _spread(builder, limit)) for limit in arguments[1:]
        ]
        return _masks(context, builder, signature, vectors)

    signature = types.UniTuple(types.uint64, 3)(types.int64, types.int64, types.int64, types.int64)
    return signature, generate


def _spread(builder, value):
    """A vector with the low byte of an i64 in all places."""
    one = builder.insert_element(
        ir.Constant(_BYTES64, ir.Undefined),
        builder.trunc(value, _I8),
        ir.Constant(ir.IntType(32), 0),
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [ir.Constant(ir.IntType(32), 0)] * 64)
    return builder.shuffle_vector(one, ir.Constant(_BYTES64, ir.Undefined), zeros)


@intrinsic
def equal64(typing_context, where, byte):
    """Mask of the 64 bytes that equal `byte` (the low 8 bits of an int64)."""

    def generate(context, builder, signature, arguments):
        data = _vector(builder, arguments[0])
        equal = builder.icmp_unsigned("==", data, _spread(builder, arguments[1]))
        return builder.bitcast(equal, _I64)

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def high64(typing_context, where):
    """Mask of the 64 bytes that are ≥ 0x80."""

    def generate(context, builder, signature, arguments):
        data = _vector(builder, arguments[0])
        return builder.bitcast(builder.icmp_signed("<", data, _splat(0)), _I64)

    return types.uint64(types.int64), generate


@intrinsic
def within64(typing_context, where, ranges):
    """Mask of the 64 bytes that lie in one of four ranges.

    `ranges` is a uint64 of (first, count) byte pairs, the lowest pair in the lowest bytes; a pair
    with count 0 holds no byte.
    """

    def generate(context, builder, signature, arguments):
        data = _vector(builder, arguments[0])
        mask = None
        for pair in range(4):
            first, count = (
                _spread(builder, builder.lshr(arguments[1], ir.Constant(_I64, 16 * pair + shift)))
                for shift in (0, 8)
            )
            inside = builder.icmp_unsigned("<", builder.sub(data, first), count)
            mask = inside if mask is None else builder.or_(mask, inside)
        return builder.bitcast(mask, _I64)

    return types.uint64(types.int64, types.uint64), generate


def _loaded(builder, where, bits, count):
    """A vector of `count` integers at an address, and its type."""
    kind = ir.VectorType(ir.IntType(bits), count)
    return builder.load(builder.inttoptr(where, kind.as_pointer()), align=1), kind


def _reduced(builder, operation, vector, kind):
    """The result of an LLVM reduction of a vector."""
    name = f"llvm.vector.reduce.{operation}.v{kind.count}i{kind.element.width}"
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(kind.element, [kind]), name
    )
    return builder.call(function, [vector])


@intrinsic
def least16(typing_context, where):
    """The least of 16 unsigned 32-bit numbers, as int64."""

    def generate(context, builder, signature, arguments):
        numbers, kind = _loaded(builder, arguments[0], 32, 16)
        return builder.zext(_reduced(builder, "umin", numbers, kind), _I64)

    return types.int64(types.int64), generate


@intrinsic
def find4(typing_context, where, key):
    """The one of the uint64 at 32, 40, 48, 56 whose like at 0, 8, 16, 24 is `key`.

    All bits are set if none is; at most one may be.
    """

    def generate(context, builder, signature, arguments):
        where, key = arguments
        keys, kind = _loaded(builder, where, 64, 4)
        values, _ = _loaded(builder, builder.add(where, ir.Constant(_I64, 32)), 64, 4)
        wanted = ir.Constant(kind, ir.Undefined)
        for place in range(4):
            wanted = builder.insert_element(wanted, key, ir.Constant(ir.IntType(32), place))
        others = builder.sext(builder.icmp_unsigned("!=", keys, wanted), kind)
        return _reduced(builder, "and", builder.or_(values, others), kind)

    return types.uint64(types.int64, types.uint64), generate


# Constants that keep masks in uint64.
ZERO = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
