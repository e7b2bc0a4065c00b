"""Facts about this machine and a cluster that decide what would run, and how fast.

Versions come from package metadata: neither Ray nor the kernels are loaded to know them.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import time
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from raybpe import __version__
from raybpe.config import RunOptions
from raybpe.cores import cores
from raybpe.counts.unicode_version import unicode_version
from raybpe.flow.executor import choose
from raybpe.flow.memory import free_memory

NEEDED = ("ray", "numba", "llvmlite", "numpy", "pyarrow", "regex", "typer", "rich", "fsspec")
OPTIONAL = ("tokenizers", "tiktoken", "transformers")

SPEED_TEXT_BYTES = 16 * 10**6  # 30 ms at full speed: steady enough, and no wait

_HOME = Path(__file__).parent

Row = tuple[str, str]


def machine_rows(address: str | None = None) -> list[Row]:
    """Versions, cores, memory, Ray and caches of this machine.

    Args:
        address: Ray cluster that a run would be given.
    """
    executor, reason = choose(RunOptions(address=address))
    return [
        ("raybpe", f"{__version__}, sources {_digest()} ({_HOME})"),
        ("python", f"{platform.python_version()} ({sys.executable})"),
        ("machine", f"{platform.system()} {platform.machine()}, {_cpu_name()}"),
        ("cores", f"{cores()} usable of {os.cpu_count()}"),
        ("memory", f"{free_memory() / 1e9:.1f} GB free for one process"),
        *((name, _version(name)) for name in NEEDED),
        *((name, _version(name, "not installed (optional)")) for name in OPTIONAL),
        ("unicode", unicode_version()),
        ("executor auto", f"{executor} ({reason})" if reason else f"{executor} (no Ray in sight)"),
        ("kernel cache", _kernel_cache()),
        ("pattern cache", _pattern_cache()),
    ]


def speed_rows() -> list[Row]:
    """How fast one core counts the standard library's sources here, per way of scanning."""
    from raybpe.block import Block
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.pretokenize import pretokenizer, resolve_pattern

    text = _sample_text()
    block = Block.of(text)
    rows = []
    for name in ("gpt2", "cl100k"):
        began = time.perf_counter()
        cutter = pretokenizer(resolve_pattern(name), ())
        cutter.count(PretokenTable(), Block.of(text[:1000]))
        ready = time.perf_counter() - began
        began = time.perf_counter()
        cutter.count(PretokenTable(), block)
        rate = len(text) / (time.perf_counter() - began) / 1e6
        rows.append(
            (f"count, {name}", f"{rate:,.0f} MB/s on one core ({cutter.engine}; {ready:.1f} s "
                               "to load kernels)")
        )  # fmt: skip
    return rows


def _sample_text() -> bytes:
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = b"".join(
        source.decode("utf-8", "ignore").encode()
        for source in (path.read_bytes() for path in sorted(folder.glob("*.py")))
    )
    return (text * (SPEED_TEXT_BYTES // max(1, len(text)) + 1))[:SPEED_TEXT_BYTES].decode(
        "utf-8", "ignore"
    ).encode()  # fmt: skip


def _version(name: str, absent: str = "MISSING") -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return absent


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def _pattern_cache() -> str:
    from raybpe.pretokenize.table_cache import cache_folder

    files = list(cache_folder().glob("*.npz"))
    return f"{cache_folder()}: {len(files)} compiled patterns"


def _digest() -> str:
    """Of the package's sources, which may differ under one version while raybpe is changed."""
    digest = sha256()
    for path in sorted(_HOME.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _kernel_cache() -> str:
    from raybpe.kernels.entry import cache_folder

    folder = Path(cache_folder())
    kernels = len(list(folder.glob("*.o")))
    return f"{folder}: {kernels} compiled kernels" + ("" if kernels else "; the first run compiles")
