"""What the encode kernels keep: the driver's words of the state block, table layouts, return codes.

The scanner and `next_piece` fill entries as in `scan_state`; `encode_words` turns them into ids.

Cache of encoded pretokens: open addressing over 32-byte slots ``[lo, hi, v0, v1]``, uint64 each;
the table begins at a multiple of 64 bytes.

- Key: as in `table`: up to 15 bytes, the bytes themselves with the length in the top byte of hi;
  longer ones, lo = a 64-bit hash, hi = KEY_LONG | length, and the bytes in the arena. An empty slot
  has hi = 0.
- Value: the bits 48 to 63 of v1 are the number of ids; below them lie the ids themselves, as the
  output holds them (7 of 16 bits or 3 of 32), so a hit is one 16-byte store. When they do not fit,
  v1 = VALUE_LONG | number of ids and v0 is an arena offset: there lie the key's bytes (of long keys
  only), padded to 8, then the ids.

Pairs: open addressing over lines of 64 bytes, four keys ``left << 32 | right`` and then their four
values ``rank << 32 | result``; NONE where there are none. A pair is in the first line that had
room. Line 0 is not of the table and stays empty. Most pairs that are looked up do not merge: a
filter of at least 16 bits per pair tells so for 19 of 20 of them, and stays in a nearer cache than
the lines. For pairs of single bytes there is a direct table of the values, by first | second << 8;
NONE where they do not merge.

Waiting pretokens: those not in the cache are merged many at a time, and their ids put in where they
belong, so meanwhile the output lacks them. A record is WAITING_BYTES: the key; address and number
of the bytes; the number of ids written before it; how many it has, and at WAITING_IDS the ids.
"""

import numpy as np

from raybpe.kernels.scan_state import DRIVER, STATE_WORDS

TABLE = DRIVER  # address of the cache
SHIFT = DRIVER + 1  # 65 - log2(slots): a key's first slot begins a pair of slots
USED = DRIVER + 2  # filled slots
LIMIT = DRIVER + 3  # slots that may be filled
ARENA = DRIVER + 4  # address of the arena
ARENA_USED = DRIVER + 5  # bytes
ARENA_SIZE = DRIVER + 6  # bytes that may be used; SLACK more can be written
ARENA_FULL = DRIVER + 7  # 1 after a value found no room
IDS = DRIVER + 8  # address of the output
IDS_USED = DRIVER + 9  # ids written
IDS_SIZE = DRIVER + 10  # ids that may be written; SLACK bytes more can be
WIDTH = DRIVER + 11  # log2 of the bytes of an id: 1 or 2
BYTE_IDS = DRIVER + 12  # address of int32 (256,)
BYTE_PAIRS = DRIVER + 13  # address of uint64 (65536,)
PAIRS = DRIVER + 14  # address of the pair table
PAIR_SHIFT = DRIVER + 15  # 64 - log2(lines)
FILTER = DRIVER + 31  # address of the filter's uint64 words
FILTER_MASK = DRIVER + 33  # its bits - 1
LENGTHS = DRIVER + 16  # address of int32 (highest id + 1,): bytes of each token
WHOLE = DRIVER + 17  # address of a cache of whole tokens that win over merges; 0: none
WHOLE_SHIFT = DRIVER + 18
WHOLE_ARENA = DRIVER + 19
SCRATCH = DRIVER + 20  # address of the working space for one pretoken
SCRATCH_SIZE = DRIVER + 21  # bytes
RECORDS = DRIVER + 22  # address of uint64 (SLICE, 4): keys of a slice
MASKS = DRIVER + 23  # address of `table.key_masks`
SPECIAL_IDS = DRIVER + 24  # address of int32: id of each compiled special token
ENDS_OUT = DRIVER + 25  # address of int64 per document: ids written at its end; 0: not wanted
NEXT = DRIVER + 26  # entries of the batch that are done
FINISHED = DRIVER + 27  # 1 when the batch ends its piece
AT = DRIVER + 28  # offset of the text that has not been given ids yet
STOP = DRIVER + 29  # offset of the end of the text
BETWEEN = DRIVER + 32  # 1: bytes outside the documents become one id each; 0: they are left out
NEED = DRIVER + 30  # bytes or ids wanted, with a GROW code
OLD = DRIVER + 34  # address of a smaller cache whose entries are to be moved to TABLE
OLD_SLOTS = DRIVER + 35  # its slots; 0: none
WAITING = DRIVER + 36  # address of the records of waiting pretokens
WAITING_COUNT = DRIVER + 37  # how many wait
WAITING_SIZE = DRIVER + 38  # their bytes, so at least the ids that will be put in

# What a driver is asked to do; a number from 0 on is the length of a text at DATA.
GO_ON = -1
BEGIN = -2
FILL_PAIRS = -3
FILL_TOKENS = -4

# Codes: a driver returns them negated; DONE becomes the number of ids written.
DONE = 0
GROW_CACHE = 1  # the cache or its arena is full
GROW_IDS = 2  # NEED ids more must fit
GROW_SCRATCH = 3  # SCRATCH must have NEED bytes

SLACK = 64  # bytes past the end of arena and output that may be written
SLICE = 256  # pretokens whose slots are prefetched together
SHORT = 63  # longest pretoken, in bytes, that may wait; longer ones are merged at once
MOST_WAITING = 64
WAITING_IDS = 48  # offset of the ids in a record
WAITING_BYTES = WAITING_IDS + 4 * SHORT + 4 + SLACK
LANES = 12  # waiting pretokens that are merged side by side
LANE = 960  # bytes of SCRATCH for each
LONGEST_CACHED = 4096  # longer pretokens are encoded anew each time
LONG_SCRATCH = 24  # bytes per byte of a longer pretoken: its symbols and a heap

KEY_LONG = np.uint64(1 << 63)
VALUE_LONG = np.uint64(0x8000 << 48)
NONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

assert WAITING_SIZE < STATE_WORDS
