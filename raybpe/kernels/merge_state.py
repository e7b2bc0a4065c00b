"""The state block of the merge kernel: what each of its int64 words holds.

Python owns the block and every array that it points to; kernels get the block's address and read
what they need into scalars. A kernel that finds too little room returns one of the codes below
before it has changed anything; Python makes room and calls again.

Positions are cell numbers in the symbol array. `merge_build` says how it is laid out.
"""

# Symbols. SENTINEL is also the number of ids there may be; SENTINEL + 1 marks a dead cell.
SYMBOLS = 0  # address: uint16 or uint32 [CELLS]
CELLS = 1
SENTINEL = 2
LENGTHS = 3  # address: uint32 [SENTINEL + 2], bytes of each token

# Weights. Words of equal count form a group; group g holds cells GROUP_BEGINS[g] to [g + 1].
GROUP_BEGINS = 4  # address: int64 [groups + 1]
GROUP_COUNTS = 5  # address: int64 [groups]
BLOCK_GROUPS = 6  # address: uint32 [CELLS // 256 + 1], group of each 256th cell
HEAD_COUNTS = 7  # address: int64 [HEAD_CELLS], count of each of the first cells
HEAD_CELLS = 8

# Pairs of at least THRESHOLD: open addressing, slots of (key, count); key = left << 32 | right.
PAIRS = 9  # address: int64 [2 * slots]; key -1 is an empty slot
PAIR_LISTS = 10  # address: uint32 [slots], record of the pair's list
PAIR_BITS = 11  # slots = 2 ** PAIR_BITS
PAIRS_USED = 12

# Lists of the positions of each pair, ascending.
RECORDS = 13  # address: int64 [3 * RECORD_ROOM], (key, first place in the pool, entries)
RECORDS_USED = 14
RECORD_ROOM = 15
POOL = 16  # address: uint32 [POOL_ROOM], positions
POOL_USED = 17
POOL_ROOM = 18

# Heap of (count, key), greatest first; counts may be too high (stale), never too low.
HEAP = 19  # address: int64 [2 * HEAP_ROOM]
HEAP_USED = 20
HEAP_ROOM = 21

# Scratch by neighbour id: (weight, number), zero between merges; and which ids were touched.
LEFT_SUMS = 22  # address: int64 [2 * (SENTINEL + 2)]
RIGHT_SUMS = 23
LEFT_SEEN = 24  # address: uint32 [SENTINEL + 3]
RIGHT_SEEN = 25
LEFT_USED = 54
RIGHT_USED = 55
# Scratch by occurrence, for the longest list there is.
PLACES = 26  # address: uint32
LEFTS = 27  # address: symbols
RIGHTS = 28  # address: symbols

# The run.
THRESHOLD = 29  # pairs below have no list
MAX_LENGTH = 30  # longest token in bytes
MERGES = 31  # made so far
TARGET = 32  # stop at this many
WORK = 33  # stop when this many list entries were handled
MERGED = 34  # address: int64 [max merges], key of each merge
MERGED_COUNTS = 35  # address: int64 [max merges]

# Byte-order ties: all token bytes one after another.
BY_BYTES = 36  # 1: greatest bytes win ties; 0: lowest ids
PREFIXES = 37  # address: int64 [SENTINEL], first 8 bytes as a number that compares like them
TEXT = 38  # address: uint8 [TEXT_ROOM]
TEXT_BEGINS = 39  # address: int64 [SENTINEL]
TEXT_USED = 40
TEXT_ROOM = 41

# Input of the operations that build and move.
DATA = 42  # address: uint8, bytes of all words
OFFSETS = 43  # address: int64, where each word begins in DATA
COUNTS = 44  # address: int64
ORDER = 45  # address: int64 [ORDER_SIZE], which words (or records) in which order
ORDER_SIZE = 46
BYTE_IDS = 47  # address: uint8 [256]
SKETCH = 48  # address: int64 [2 ** SKETCH_BITS]
SKETCH_BITS = 49
OLD = 50  # address: what is being moved from
OLD_LISTS = 51
OLD_SIZE = 52
FILTER = 53  # 1: compaction also drops stale entries
BYTE_PAIR_COUNTS = 57  # address: int64 [2 ** 16]
BATCH = 59  # address: uint32 [512], scratch
BYTE_PAIR_PLACES = 58  # address: uint32 [2 ** 16], numbers of pairs, later places in the pool
NEEDED = 56  # how many more items the array wants that a code says is full

WORDS_OF_STATE = 64

# Return codes of `run`.
REACHED = 0  # TARGET merges are made
PAUSED = 1  # WORK is done
NO_PAIRS = 2  # no pair of at least THRESHOLD is left
PAIRS_FULL = 3
RECORDS_FULL = 4
POOL_FULL = 5
HEAP_FULL = 6
TEXT_FULL = 7

# Operations of `merge.run`.
BUILD = 0
INDEX_GROUPS = 1
START_LISTS = 2
FILL_BYTE_LISTS = 3
MERGE = 4
COMPACT = 5
MOVE_PAIRS = 6

# Operations of `merge_rebuild.run_rebuild`.
SKETCH_PAIRS = 0
COUNT_PAIRS = 1
FILL_LISTS = 2

EMPTY = -1  # key of an empty slot of the pair table
