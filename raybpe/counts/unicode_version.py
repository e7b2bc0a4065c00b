"""Which Unicode data patterns are matched with: that of the `regex` package.

Another version may put a character into another class and so give other pretokens. `regex` does
not say which version of Unicode it has, so that is found out by characters that are new in each.
"""

from functools import lru_cache

import regex

# A character that the version added, newest first.
_ADDED = (
    ("17.0", "\U00010940"),
    ("16.0", "\U00010d40"),
    ("15.1", "\U0002ebf0"),
    ("15.0", "\U0001e4d0"),
    ("14.0", "\U00010570"),
    ("13.0", "\U00010e80"),
)


@lru_cache(maxsize=1)
def unicode_version() -> str:
    """Version of Unicode in the `regex` package, such as `17.0`; the newest that is known here."""
    for version, added in _ADDED:
        if regex.fullmatch(r"\p{Assigned}", added):
            return version
    return "before 13.0"
