"""Every kernel that Python calls. Importing this module imports no Numba."""

from collections.abc import Iterator

from raybpe.kernels.entry import Kernel

# Counting: the address of a scanner's state (`scan_state`, `count_state`) → a code.
count_gpt2 = Kernel("count_gpt2", "count_gpt2", "int64")
count_automaton = Kernel("count_automaton", "count_automaton", "int64")

# A table as a whole: operation, table, request (`table_layout`, `table_requests`) → a code.
table_rows = Kernel("table_rows", "run", "int64", "int64", "int64")

# Valid UTF-8: see `utf8`.
first_invalid = Kernel("utf8", "first_invalid", *["int64"] * 4)
split_invalid = Kernel("utf8", "split_invalid", *["int64"] * 6)

# Safe cuts: see `cuts`.
find_next_cut = Kernel("cuts", "find_next_cut", *["int64"] * 6)
find_last_cut = Kernel("cuts", "find_last_cut", *["int64"] * 5)

# One turn of a scanner: the address of its state → 1 at the end of the piece, else 0.
scan_gpt2 = Kernel("scan_gpt2", "scan", "int64")
scan_automaton = Kernel("scan_automaton", "scan", "int64")

# Merging: operation, state block (`merge_state`), a number of the symbols' type → a code.
merge = {width: Kernel("merge", "run", "int64", "int64", f"uint{width}") for width in (16, 32)}
merge_rebuild = {
    width: Kernel("merge_rebuild", "run_rebuild", "int64", "int64", f"uint{width}")
    for width in (16, 32)
}

# Merges from ranks: see `ranks`.
recover_merges = Kernel("ranks", "recover", *["int64"] * 7)

# Encoding, for each way of scanning: state block, request (`encode`, `encode_state`) → a count.
encode = {
    name: Kernel(f"encode_{name}", "run", "int64", "int64")
    for name in ("gpt2", "automaton", "listed")
}


def every_kernel() -> Iterator[Kernel]:
    """All of the above."""
    for value in list(globals().values()):
        members = value.values() if isinstance(value, dict) else [value]
        for member in members:
            if isinstance(member, Kernel):
                yield member
