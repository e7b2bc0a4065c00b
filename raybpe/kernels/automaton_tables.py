"""Layout of the tables of a compiled pattern: one uint8 array that kernels get the address of.

A *symbol* is what the tables are indexed by: an ASCII byte (0–127), 128 + the class of any other
code point, or END_SYMBOL. The two state tables have a row of 256 uint32 per state. An entry is the
byte offset of the next state's row, plus flags. Row 0 is that of the dead state.

    header   int64 (8,): byte offsets of the parts below, in this order; see the constants
    pages    uint16 (PAGE_COUNT,): page of each 64 code points; 0 beyond Unicode, which only
             invalid text holds
    classes  uint8 (pages, 64): 128 + class, by page and the low six bits of the code point
    cuts     uint8 (256, 32): bit y of row x, whether text may be cut between symbols x and y
    match    uint32 (S, 256): the automaton itself, flag HERE: a match ends before the symbol
    fast     uint32 (F, 256): the automaton that also goes on to the next pretokens, flags below

Flags of `fast`, about a span that is open and its end: BEFORE, it ends before the previous code
point, and another begins there; HERE, the span (the one just begun, after BEFORE) ends before this
symbol, and another begins here. LOOSE: the span that ends by HERE (or by the end of the text) is
not matched. SLOW: none of this can be said; find the span's end with `match`.

The header's last words: PAIRS, 1 when any bit of `cuts` is set; UNUSED is zero.
"""

PAGES, CLASSES, CUTS, MATCHES, FAST, PAIRS = (8 * word for word in range(6))
HEADER_BYTES = 64
PAGE_COUNT = 1 << 15  # four bytes of UTF-8 hold 21 bits, six of them within a page

HERE = 1
BEFORE = 2
LOOSE = 4
SLOW = 8

ROW_BYTES = 4 * 256
ROW = 0xFFFF_FFFF & -ROW_BYTES
"""Mask of an entry's row; the rest are flags."""
START = ROW_BYTES
"""Row of the start, in both tables."""
END_SYMBOL = 255
"""Column for the end of the text."""
