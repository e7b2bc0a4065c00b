"""Where texts of a data set are cut: so that documents can be counted, or are whole."""

from __future__ import annotations

from collections.abc import Sequence

from raybpe.inputs import Cutter
from raybpe.inputs.pieces import Bytes


class TextCutter:
    """The cuts of a pattern, but none just after an end-of-text token.

    Whether a document begins after that token depends on whether text follows, so it must be in
    the same piece. Nothing but such tokens, one after the other, is one piece.
    """

    def __init__(self, cutter: Cutter, eot_token: str) -> None:
        self._cutter = cutter
        self._mark = eot_token.encode()

    @property
    def special_tokens(self) -> Sequence[str]:
        """Those of the pattern's cutter."""
        return self._cutter.special_tokens

    def next_cut(self, data: Bytes, position: int, end: int, final: bool) -> int | None:
        """First cut at or after `position`; the end of the text is one whatever it follows."""
        cut = self._cutter.next_cut(data, position, end, final)
        while cut is not None and self._is_after_mark(data, cut):
            if cut == end:
                return end if final else None
            cut = self._cutter.next_cut(data, cut + 1, end, final)
        return cut

    def last_cut(self, data: Bytes, start: int, end: int) -> int | None:
        """Last cut in (start, end]."""
        cut = self._cutter.last_cut(data, start, end)
        while cut is not None and self._is_after_mark(data, cut):
            cut = self._cutter.last_cut(data, start, cut - 1)
        return cut

    def _is_after_mark(self, data: Bytes, cut: int) -> bool:
        before = data[max(0, cut - len(self._mark)) : cut]
        return before.tobytes() == self._mark


class DocumentCutter:
    """Cuts a text after each end-of-text token, so that what lies between is whole documents."""

    def __init__(self, eot_token: str | None) -> None:
        self.special_tokens = () if eot_token is None else (eot_token,)
        self.mark = None if eot_token is None else eot_token.encode()

    def next_cut(self, data: Bytes, position: int, end: int, final: bool) -> int | None:
        """First document start at or after `position`."""
        if position == 0:
            return 0
        if self.mark is not None:
            base = max(0, position - len(self.mark))
            found = data[base:end].tobytes().find(self.mark)
            if found >= 0:
                return base + found + len(self.mark)
        return end if final else None

    def last_cut(self, data: Bytes, start: int, end: int) -> int | None:
        """Place after the last end-of-text token."""
        if self.mark is None:
            return None
        found = data[start:end].tobytes().rfind(self.mark)
        return None if found < 0 else start + found + len(self.mark)
