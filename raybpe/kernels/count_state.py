"""The words of a scanner's state that belong to counting."""

from raybpe.kernels.scan_state import DRIVER

TABLE = DRIVER  # address of the words that describe the table
TAKEN = DRIVER + 1  # entries of the output buffer that are counted already
COUNTED = DRIVER + 2  # pretokens counted

SCAN = -1  # from `advance`: it is the scanner's turn
