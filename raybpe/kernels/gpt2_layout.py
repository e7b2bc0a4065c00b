"""Constants of the character classes of the GPT-2 scanner."""

LETTER, NUMBER, WHITE = 1, 2, 4
RANGES = 0x200000  # all that can be decoded: even invalid text does not read beyond the table
TABLE_BYTES = RANGES + 8
