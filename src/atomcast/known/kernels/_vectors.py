"""Squared distances by vector instructions, which compilers do not find for rows of any length.

Left to itself, the compiler takes many numbers at a time, and the rest of a row one after the
other: of 120 numbers, the rest takes longer. Here the rest is one more vector, which ends where the
row does, without the numbers that were counted before. How a row is summed depends on its length
alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Bytes of a vector, which rows must have or more, and how many of them are summed side by side.
WIDTH, SUMS = 64, 2
#: So many bytes ahead, memory is asked for: two cores need more on its way than they ask for of
#: themselves.
AHEAD = 8192
#: Sums may be reordered; NaNs keep their meaning.
FLAGS = ("reassoc", "contract", "nsz")
WHOLE, INDEX = ir.IntType(64), ir.IntType(32)


class _Distance:
    """Writes instructions that add up (x - z)^2, a vector at a time."""

    def __init__(self, builder: Any, real: Any, itemsize: int, x: Any, z: Any) -> None:
        self._builder, self._ends, self._itemsize = builder, (x, z), itemsize
        self.lanes = WIDTH // itemsize
        self._vector = ir.VectorType(real, self.lanes)
        self.zero = ir.Constant(self._vector, [0.0] * self.lanes)
        self.sums = [cgutils.alloca_once_value(builder, self.zero) for _ in range(SUMS)]

    def add(self, sum: Any, at: Any, mask: Any = None) -> None:
        """Add what the vectors that begin at a number have, or some of it."""
        self._ask_for(at)
        builder, (x, z) = self._builder, (self._load(end, at) for end in self._ends)
        difference = builder.fsub(x, z)
        if mask is not None:
            difference = builder.select(mask, difference, self.zero)
        square = builder.fmul(difference, difference, flags=FLAGS)
        builder.store(builder.fadd(builder.load(sum), square, flags=FLAGS), sum)

    def _ask_for(self, at: Any) -> None:
        """Have the memory send what will be needed some rows later, whether it is there or not."""
        builder, byte = self._builder, ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, INDEX, INDEX, INDEX])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        later = builder.add(at, ir.Constant(WHOLE, AHEAD // self._itemsize))
        place = builder.bitcast(builder.gep(self._ends[0], [later]), byte)
        builder.call(function, [place, *(ir.Constant(INDEX, k) for k in (0, 3, 1))])

    def _load(self, start: Any, at: Any) -> Any:
        place = self._builder.gep(start, [at])
        loaded = self._builder.load(self._builder.bitcast(place, self._vector.as_pointer()))
        loaded.align = self._itemsize
        return loaded

    def last(self, rest: Any) -> Any:
        """Which numbers of a vector are the last `rest` ones."""
        wide, nowhere = ir.VectorType(WHOLE, self.lanes), ir.Constant(INDEX, 0)
        undefined = ir.Constant(wide, ir.Undefined)
        first = self._builder.sub(ir.Constant(WHOLE, self.lanes), rest)
        one = self._builder.insert_element(undefined, first, nowhere)
        same = ir.Constant(ir.VectorType(INDEX, self.lanes), [0] * self.lanes)
        everywhere = self._builder.shuffle_vector(one, undefined, same)
        places = ir.Constant(wide, list(range(self.lanes)))
        return self._builder.icmp_unsigned(">=", places, everywhere)

    def total(self, real: Any) -> Any:
        """The sum of all."""
        builder, parts = self._builder, [self._builder.load(sum) for sum in self.sums]
        kind = ir.FunctionType(real, [real, self._vector])
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f{8 * self._itemsize}"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        whole = builder.fadd(*parts, flags=FLAGS)
        return builder.call(function, [ir.Constant(real, 0.0), whole], fastmath=FLAGS)


def _square_distance(typing_context: Any, x: Any, z: Any, d: Any) -> Any:
    """||x - z||^2 of rows of d numbers that follow each other in memory."""
    if x.layout != "C" or z.layout != "C" or x.dtype != z.dtype:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        real, d = context.get_value_type(x.dtype), args[2]
        ends = [context.make_array(kind)(context, builder, row).data
                for kind, row in zip(signature.args[:2], args[:2], strict=True)]  # fmt: skip
        distance = _Distance(builder, real, x.dtype.bitwidth // 8, *ends)
        one = ir.Constant(WHOLE, distance.lanes)
        pair = ir.Constant(WHOLE, SUMS * distance.lanes)
        pairs = builder.udiv(d, pair)
        with cgutils.for_range(builder, pairs, intp=WHOLE) as loop:
            at = builder.mul(loop.index, pair)
            distance.add(distance.sums[0], at)
            distance.add(distance.sums[1], builder.add(at, one))
        done = builder.mul(pairs, pair)
        with builder.if_then(builder.icmp_unsigned(">=", builder.sub(d, done), one)):
            distance.add(distance.sums[0], done)
        rest = builder.urem(d, one)
        with builder.if_then(builder.icmp_unsigned("!=", rest, ir.Constant(WHOLE, 0))):
            distance.add(distance.sums[1], builder.sub(d, one), distance.last(rest))
        return distance.total(real)

    return x.dtype(x, z, types.uint64), codegen


square_distance: Any = intrinsic(_square_distance)
