"""Canonical order of counts: count descending, then bytes ascending."""

import numpy as np
import pyarrow.compute as pc

from raybpe.counts.arrow import to_arrow
from raybpe.counts.columns import Columns, take


def canonical_order(columns: Columns) -> Columns:
    """The same rows in canonical order."""
    keys = [("count", "descending"), ("pretoken", "ascending")]
    rows = pc.sort_indices(to_arrow(columns), sort_keys=keys)
    return take(columns, rows.to_numpy().astype(np.int64))
