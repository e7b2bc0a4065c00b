"""All Numba code and nothing else: scanning, counting, merging, encoding.

No Ray, no Arrow, no input or output but the files of `entry`, which keep compiled code. Kernels
take addresses, check nothing, and return codes; the classes that own the arrays are elsewhere.
Python calls what `entries` lists, so that Numba is only imported to compile.
"""
