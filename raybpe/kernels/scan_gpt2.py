"""Scanner for the GPT-2 pattern, 64 bytes at a time.

    '(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

Each block of 64 bytes becomes masks: letters L, numbers N, white space W, spaces S, the rest O; the
class of a multi-byte character is spread over its bytes. Whether a pretoken starts at a byte
depends on the classes of that byte, the one before and the one after:

- a non-space starts one unless the byte before is of the same class or is a space (then that
  space starts it);
- white space starts one where its run starts, and at the last character of its run if a
  non-space follows; none does at the end of the text, where everything after counts as white.

So bit i of a block decides about byte i - 1, when byte i is known. Contractions are mended
afterwards. Speed does not depend on how long pretokens are.

TABLES points to TABLE_BYTES uint8: the class of each code point (LETTER, NUMBER, WHITE or 0), then
four (first, count) pairs: ranges of lead bytes whose characters are all letters, for `within64`.
"""

import numpy as np
from numba import njit

from raybpe.kernels.gpt2_layout import RANGES
from raybpe.kernels.intrinsics import (
    ALL,
    ONE,
    ZERO,
    as_u64,
    at_least64,
    classify64,
    ctz,
    load8,
    load16,
    load32,
    load64,
    load_i64,
    popcount,
    store64,
    within64,
)
from raybpe.kernels.scan_state import BATCH, CARRY, COUNT, DATA, END, GAP, OUT, POS, TABLES

# Bytes into the state block: masks of the block before, and starts of the next one to mend.
_STARTED = CARRY * 8
_LETTERS = _STARTED + 8
_NUMBERS = _STARTED + 16
_WHITE = _STARTED + 24
_SPACES = _STARTED + 32
_OTHERS = _STARTED + 40
_APOSTROPHES = _STARTED + 48
_CONTINUED = _STARTED + 56
_CLEAR = _STARTED + 64
_SET = _STARTED + 72

_U2 = np.uint64(2)
_U62 = np.uint64(62)
_U63 = np.uint64(63)

_ONE_LETTER = (ord("s"), ord("t"), ord("d"), ord("m"))
_TWO_LETTERS = tuple(ord(pair[0]) | ord(pair[1]) << 8 for pair in ("re", "ve", "ll"))


@njit
def _point(word):
    """Code point of the valid multi-byte character in the low bytes of `word`."""
    if word & 0xFF < 0xE0:
        return (word & 0x1F) << 6 | (word >> 8) & 0x3F
    if word & 0xFF < 0xF0:
        return (word & 0xF) << 12 | (word >> 2) & 0xFC0 | (word >> 16) & 0x3F
    return (word & 7) << 18 | (word & 0x3F00) << 4 | (word >> 10) & 0xFC0 | (word >> 24) & 0x3F


@njit
def _classify_high(where, valid, tables):
    """Masks of the multi-byte characters of a block: letters, numbers, white at their lead bytes,
    and the continuation bytes. `valid` has the bytes that belong to the piece.
    """
    from_80, from_c0, from_e0 = at_least64(where, 0x80, 0xC0, 0xE0)
    lead = from_c0 & valid
    letters = lead & within64(where, load64(tables + RANGES))
    numbers = ZERO
    white = ZERO
    todo = lead & ~letters & ~from_e0
    while todo != ZERO:
        at = ctz(todo)
        word = load16(where + at)
        kind = as_u64(load8(tables + ((word & 0x1F) << 6 | (word >> 8) & 0x3F)))
        letters |= (kind & ONE) << as_u64(at)
        numbers |= ((kind >> ONE) & ONE) << as_u64(at)
        white |= (kind >> _U2) << as_u64(at)
        todo &= todo - ONE
    todo = lead & ~letters & from_e0
    while todo != ZERO:
        at = ctz(todo)
        kind = as_u64(load8(tables + _point(load32(where + at))))
        letters |= (kind & ONE) << as_u64(at)
        numbers |= ((kind >> ONE) & ONE) << as_u64(at)
        white |= (kind >> _U2) << as_u64(at)
        todo &= todo - ONE
    return letters, numbers, white, from_80 & ~from_c0 & valid


@njit
def _spread(mask, before, continuation):
    """The mask with each lead byte's bit copied to its continuation bytes (three at most)."""
    mask |= (mask << ONE | before >> _U63) & continuation
    mask |= mask << ONE & continuation
    return mask | mask << ONE & continuation


@njit
def _to_leads(starts, moved, data, first, out, count):
    """Move the starts in `moved`, which are on continuation bytes, to their lead bytes.

    Bit i stands for offset first + i. A lead before `first` goes straight to the output, unless it
    is there already. Returns (starts, count).
    """
    starts &= ~moved
    while moved != ZERO:
        lead = first + ctz(moved)
        while load8(data + lead) & 0xC0 == 0x80:
            lead -= 1
        if lead >= first:
            starts |= ONE << as_u64(lead - first)
        elif load_i64(out + 8 * count - 8) != lead:
            store64(out + 8 * count, lead)
            count += 1
        moved &= moved - ONE
    return starts, count


@njit
def _contractions(apostrophes, starts, data, first, end):
    """Mend the starts after apostrophes that start a pretoken and have a letter after them.

    Bit i stands for offset first + i. Returns (starts, bits to clear and bits to set in the next
    block).
    """
    clear_next = ZERO
    set_next = ZERO
    while apostrophes != ZERO:
        at = ctz(apostrophes)
        apostrophes &= apostrophes - ONE
        letter = first + at + 1
        word = load16(data + letter)
        low = word & 0xFF
        length = 0
        if low in _ONE_LETTER:
            length = 1
        elif word in _TWO_LETTERS and letter + 2 <= end:
            length = 2
        if length > 0:
            if at < 63:
                starts &= ~(ONE << as_u64(at + 1))
            else:
                clear_next |= ONE
            if letter + length < end:
                after = at + 1 + length
                if after < 64:
                    starts |= ONE << as_u64(after)
                else:
                    set_next |= ONE << as_u64(after - 64)
    return starts, clear_next, set_next


@njit
def _flatten(mask, first, out):
    """Write first + i for each bit i of the mask, in order; may write 8 entries more than set."""
    bits = popcount(mask)
    written = 0
    while written < bits:
        for step in range(8):
            store64(out + 8 * (written + step), first + ctz(mask))
            mask &= mask - ONE
        written += 8
    return bits


@njit
def scan(state):
    """Append pretoken starts to the output; 1 when the piece is finished, else 0."""
    data = load_i64(state + 8 * DATA)
    at = load_i64(state + 8 * POS)
    end = load_i64(state + 8 * END)
    out = load_i64(state + 8 * OUT)
    count = load_i64(state + 8 * COUNT)
    tables = load_i64(state + 8 * TABLES)
    usable = ~ONE if load_i64(state + _STARTED) == 0 else ALL  # the first block's bit 0 is no byte
    letters0 = load64(state + _LETTERS)
    numbers0 = load64(state + _NUMBERS)
    white0 = load64(state + _WHITE)
    spaces0 = load64(state + _SPACES)
    others0 = load64(state + _OTHERS)
    apostrophes0 = load64(state + _APOSTROPHES)
    continued0 = load64(state + _CONTINUED)
    clear = load64(state + _CLEAR)
    mend = load64(state + _SET)

    while at <= end and count < BATCH:
        letters, numbers, spaces, white, apostrophes, high = classify64(data + at)
        valid = ALL
        if end - at < 64:
            valid = (ONE << as_u64(end - at)) - ONE
            letters &= valid
            numbers &= valid
            white |= ~valid
            high &= valid
            usable &= valid << ONE | ONE
        continued = ZERO
        if high != ZERO:
            letters1, numbers1, white1, continued = _classify_high(data + at, valid, tables)
            letters = _spread(letters | letters1, letters0, continued)
            numbers = _spread(numbers | numbers1, numbers0, continued)
            white = _spread(white | white1, white0, continued)
        others = ~(letters | numbers | white)

        same = (
            (letters << ONE | letters0 >> _U63) & (letters << _U2 | letters0 >> _U62)
            | (numbers << ONE | numbers0 >> _U63) & (numbers << _U2 | numbers0 >> _U62)
            | (others << ONE | others0 >> _U63) & (others << _U2 | others0 >> _U62)
        )
        now_white = white << ONE | white0 >> _U63
        word = ~(now_white | same | spaces << _U2 | spaces0 >> _U62)
        gap = now_white & ~((white << _U2 | white0 >> _U62) & white)
        starts = (word | gap) & usable
        moved = starts & (continued << ONE | continued0 >> _U63) & gap
        if moved != ZERO:
            starts, count = _to_leads(starts, moved, data, at - 1, out, count)
        starts = starts & ~clear | mend
        quotes = (apostrophes << ONE | apostrophes0 >> _U63) & word & starts & letters
        clear = ZERO
        mend = ZERO
        if quotes != ZERO:
            starts, clear, mend = _contractions(quotes, starts, data, at - 1, end)
        count += _flatten(starts, at - 1, out + 8 * count)

        letters0 = letters
        numbers0 = numbers
        white0 = white
        spaces0 = spaces
        others0 = others
        apostrophes0 = apostrophes
        continued0 = continued
        usable = ALL
        at += 64

    finished = 0
    if at > end:
        store64(out + 8 * count, as_u64(end) | GAP)
        count += 1
        finished = 1
    else:
        store64(state + _STARTED, 1)
        store64(state + _LETTERS, letters0)
        store64(state + _NUMBERS, numbers0)
        store64(state + _WHITE, white0)
        store64(state + _SPACES, spaces0)
        store64(state + _OTHERS, others0)
        store64(state + _APOSTROPHES, apostrophes0)
        store64(state + _CONTINUED, continued0)
        store64(state + _CLEAR, clear)
        store64(state + _SET, mend)
    store64(state + 8 * POS, at)
    store64(state + 8 * COUNT, count)
    return finished
