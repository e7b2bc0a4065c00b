"""`Counts`: how often each pretoken stands in a text, and what it was counted with.

Counts are a value of their own: made once by counting, saved, added up, looked at, and trained
from as often as wanted. They are held as one Arrow table; a row's place in it means nothing, and
`save` and `items` use the canonical order (count descending, then bytes ascending), so that equal
counts are equal files.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from raybpe import given
from raybpe.config import CountConfig
from raybpe.counts.arrow import SCHEMA, from_arrow, to_arrow
from raybpe.counts.columns import Columns, concatenate, exact_sum, take
from raybpe.counts.order import canonical_order
from raybpe.counts.statistics import statistics
from raybpe.counts.unicode_version import unicode_version
from raybpe.errors import CapacityError, CountsError, UsageError
from raybpe.quoted import shortened

LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True)
class CountedSource:
    """An input that was counted: its name, and its size in bytes (-1 where it has none)."""

    uri: str
    size: int


@dataclass(frozen=True, eq=False)
class Counts:
    """Pretokens and how often each was seen.

    Attributes:
        table: Arrow table ``pretoken: large_binary, count: int64``; no pretoken twice.
        config: what decided the counts, or None when they came from a mapping.
        sources: what was counted.
        unicode: version of the Unicode data that the pattern was matched with.
    """

    table: pa.Table
    config: CountConfig | None = None
    sources: tuple[CountedSource, ...] = ()
    unicode: str = ""

    def __post_init__(self) -> None:
        if not self.table.schema.equals(SCHEMA):
            raise CountsError(
                f"a table of counts has the columns {SCHEMA.to_string()}, not "
                f"{self.table.schema.to_string()}".replace("\n", ", ")
            )
        if not self.unicode:
            object.__setattr__(self, "unicode", unicode_version())

    @classmethod
    def from_mapping(cls, mapping: Mapping[Any, int], config: CountConfig | None = None) -> Counts:
        """Counts from ``{bytes or str: int}``; a text and its UTF-8 bytes are the same pretoken.

        >>> Counts.from_mapping({"low": 5, b" lower": 2}).total
        7

        Raises:
            UsageError: a key is neither text nor bytes, a count is not an integer from 0 up, or
                `config` is not one.
            CapacityError: a count passes 2**63 - 1.
        """
        if not isinstance(mapping, Mapping):
            raise given.wrong_type("mapping", mapping, "a mapping from pretokens to counts")
        if config is not None and not isinstance(config, CountConfig):
            raise given.wrong_type("config", config, "a raybpe.config.CountConfig")
        summed: dict[bytes, int] = {}
        for key, value in mapping.items():
            pretoken = _as_bytes(key)
            number = value
            if type(value) is not int or value < 0:
                number = given.count(f"the count of {key!r}", value, least=0)
            summed[pretoken] = summed.get(pretoken, 0) + number
            if summed[pretoken] > LARGEST_COUNT:
                raise CapacityError(
                    f"the count of {key!r} is {summed[pretoken]:,}; counts hold at most 2**63 - 1"
                )
        columns = [pa.array(summed.keys(), SCHEMA[0].type), pa.array(summed.values(), pa.int64())]
        return cls(pa.Table.from_arrays(columns, schema=SCHEMA), config)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counts:
        """Read a counts file.

        Raises:
            CountsError: it is corrupt, or not a counts file.
            InputError: it is missing or unreadable.
        """
        from raybpe.counts.counts_file import load_counts

        return load_counts(given.path("the counts file", path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a counts file; the path holds the old file or the whole new one at any time.

        Raises:
            OutputError: it cannot be written.
        """
        from raybpe.counts.counts_file import save_counts

        save_counts(self, given.path("the counts file", path))

    @classmethod
    def sum(cls, several: Iterable[Counts]) -> Counts:
        """Add up counts that were made with the same settings.

        Raises:
            CountsError: their settings differ, or there is nothing to add.
            CapacityError: a count passes 2**63 - 1.
        """
        from raybpe.counts.pretoken_table import PretokenTable

        counts = given.several("several", several, "a list of Counts")
        for one in counts:
            if not isinstance(one, Counts):
                raise given.wrong_type("each of several", one, "Counts")
        if not counts:
            raise CountsError("there are no counts to add; give at least one")
        first = counts[0]
        table = PretokenTable()
        for one in counts:
            first._refuse_other_settings(one)
            for part in from_arrow(one.table):
                seen = np.flatnonzero(part.counts)  # a table may list what never occurs
                table.insert(*(part if len(seen) == len(part.counts) else take(part, seen)))
        columns = concatenate(table.export())
        sources = tuple(source for one in counts for source in one.sources)
        return cls(to_arrow(columns), first.config, sources, first.unicode)

    def __add__(self, other: Counts) -> Counts:
        return Counts.sum([self, other]) if isinstance(other, Counts) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        same = self._settings() == other._settings() and len(self) == len(other)
        return same and bool(self.canonical().table.equals(other.canonical().table))

    __hash__ = None  # type: ignore[assignment]

    def _refuse_other_settings(self, other: Counts) -> None:
        mine, theirs = self._settings(), other._settings()
        differences = [
            f"{name.replace('_', ' ')} {mine.get(name)!r} and {theirs.get(name)!r}"
            for name in sorted(mine.keys() | theirs.keys())
            if mine.get(name) != theirs.get(name)
        ]
        if differences:
            raise CountsError(
                "these counts were not made with the same settings and cannot be added: "
                f"{'; '.join(differences)}. Count again with the same settings"
            )

    def _settings(self) -> dict[str, Any]:
        """What must agree before counts may be added."""
        if self.config is None:
            return {"pattern": None}
        settings = {item.name: getattr(self.config, item.name) for item in fields(self.config)}
        del settings["pattern_name"]  # the same pattern may go by two names
        return settings | {"Unicode_version": self.unicode}

    @cached_property
    def columns(self) -> Columns:
        """The table as plain arrays."""
        parts = list(from_arrow(self.table))
        return concatenate(parts)

    def canonical(self) -> Counts:
        """The same counts with rows by count descending, then bytes ascending."""
        ordered = canonical_order(self.columns)
        return Counts(to_arrow(ordered), self.config, self.sources, self.unicode)

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Pretokens and counts in canonical order."""
        for batch in self.canonical().table.to_batches(max_chunksize=65536):
            yield from zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def total(self) -> int:
        """Occurrences of all pretokens."""
        return exact_sum(self.columns.counts)

    def stats(self) -> dict[str, int | float | str]:
        """Totals and shape, by name; see `statistics`."""
        return statistics(self.columns)

    def top(self, number: int = 10) -> list[tuple[bytes, int]]:
        """The pretokens with the highest counts."""
        counts = self.columns.counts
        number = max(given.whole_number("number", number), 0)
        if len(counts) > number > 0:
            least = np.partition(counts, len(counts) - number)[len(counts) - number]
            rows = np.flatnonzero(counts >= least)
            picked = Counts(self.table.take(pa.array(rows)), self.config, (), self.unicode)
        else:
            picked = self
        return [item for item, _ in zip(picked.items(), range(number), strict=False)]

    def __repr__(self) -> str:
        return f"Counts({len(self):,} distinct pretokens, {self.total:,} in all)"

    def _repr_html_(self) -> str:
        rows = [_row(name.replace("_", " "), _shown(value)) for name, value in self.stats().items()]
        top = [
            _row(f"<code>{html.escape(shortened(pretoken, 60))}</code>", f"{number:,}")
            for pretoken, number in self.top(10)
        ]
        pattern = "" if self.config is None else self.config.pattern_name or self.config.pattern
        return (
            f"<b>Counts</b> {html.escape(pattern)}"
            f"<table><tbody>{''.join(rows)}</tbody></table>"
            f"<table><thead><tr><th>pretoken</th><th>count</th></tr></thead>"
            f"<tbody>{''.join(top)}</tbody></table>"
        )


def _as_bytes(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        try:
            return key.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the pretoken {key!r} holds a lone surrogate; give bytes") from None
    raise given.wrong_type("a pretoken", key, "text or bytes")


def _row(left: str, right: str) -> str:
    return f"<tr><td>{left}</td><td style='text-align:right'>{right}</td></tr>"


def _shown(value: int | float | str) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else html.escape(value)
