"""Results and the layout of special tokens of `cuts`."""

NONE = -1
NEED_MORE = -2

FIRST_BYTES = 16  # offsets in `specials`
RECORDS = FIRST_BYTES + 256
RECORD_BYTES = 16
