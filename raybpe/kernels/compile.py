"""From a Numba function to object code."""

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numba


def object_code(kernel: Any, arguments: Sequence[str]) -> tuple[str, bytes]:
    """Symbol and object file of a jitted function, for the processor that this runs on.

    The code is the same as Numba would run, and needs nothing of Numba's as long as the function
    neither raises nor allocates.
    """
    types = [getattr(numba.types, name) for name in arguments]
    compiled = numba.cfunc(numba.types.int64(*types))(kernel.py_func)
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
    code = machine.emit_object(llvm.parse_assembly(compiled.inspect_llvm()))
    return compiled.native_name, code
