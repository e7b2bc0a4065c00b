"""What can be asked of a table as a whole, and the words of such a request; see `table_rows`."""

REHASH, INSERT, ADD, MEASURE, FILL = range(5)

# Words of a request.
NEXT = 0  # rows or slots done
TOTAL = 1  # rows or slots in all
SOURCE = 2  # REHASH: old slots; INSERT: data; ADD: slots of the other table
SOURCE_SIZE = 3  # INSERT: bytes of data, none of which after them is read
OFFSETS = 4  # INSERT, FILL: int64 offsets
COUNTS = 5  # INSERT, FILL: int64 counts
SOURCE_ARENA = 6  # ADD: arena of the other table
PARTITIONS = 7  # MEASURE, FILL: how many
LONGEST = 8  # MEASURE, FILL: longer pretokens are left out
CURSORS = 9  # MEASURE, FILL: int64 (partitions + 1, 3), see there
TARGET = 10  # FILL: data
REQUEST_WORDS = 16
