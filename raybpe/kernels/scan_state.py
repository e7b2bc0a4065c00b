"""The state block that scanners share with the drivers that call them.

A scanner is a jitted function ``scan(state) -> 1 or 0``; `state` is the address of an int64 block
owned by Python. It appends the starts of pretokens to the output buffer until that holds BATCH
entries or more (returns 0: call again) or the piece is finished (returns 1). A piece is a text of
its own: a document, or what lies between two special tokens in one.

Entry i spans to entry i + 1. Bit 63 (GAP) of an entry marks a span that is no pretoken: the end of
a piece, or a stretch that the pattern does not match. The first entry of a piece is the start of
its first pretoken or gap, the last is its end, with GAP; an empty piece gives only its end. Entries
are offsets from DATA; a batch may hold several pieces one after the other. Who takes entries out
while a piece is unfinished leaves the last one in, as the first: its span is not over. The text of
a piece is valid UTF-8, and at least 128 bytes after its end can be read.

Words 0 to 63 belong to the scanner, the rest to `pieces.next_piece`, which cuts the documents of a
block into pieces, and to the driver.
"""

import numpy as np

# Word index in the state block; multiply by 8 for the byte offset.
DATA = 0  # address of the block's first byte
POS = 1  # offset of the next byte to scan; the piece's start at first
END = 2  # offset of the piece's end
OUT = 3  # address of the output buffer: uint64 (CAPACITY,)
COUNT = 4  # entries in the output buffer
TABLES = 5  # address of the pattern's tables
CARRY = 16  # words 16 to 63 are the scanner's own; all zero at the start of a piece
WORDS = 64

STARTS = 64  # address of int64 starts of the documents
ENDS = 65  # address of int64 ends of the documents
DOCUMENTS = 66  # number of documents
DOCUMENT = 67  # documents begun so far
RESUME = 68  # where the next piece of the current document starts; -1: take the next document
SPECIALS = 69  # address of the compiled special tokens
FOLLOW = 70  # index of the special token right after the piece; -1 at the document's end
ACTIVE = 71  # 1 while a piece is being scanned
DRIVER = 80  # words from here on are the driver's own
STATE_WORDS = 128

BATCH = 512  # entries after which a scanner stops
CAPACITY = BATCH + 256  # one more step of any scanner adds at most 128 entries
GAP = np.uint64(1 << 63)
