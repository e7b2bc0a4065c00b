"""All Numba code and nothing else: scanning, counting, merging, encoding.

No input or output, no Ray, no Arrow. Kernels take addresses, check nothing, and return codes;
the classes that own the arrays are elsewhere.
"""

from raybpe.kernels import compile_cache

compile_cache.install()
