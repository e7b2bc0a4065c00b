"""Find, plan and read what people have: text, lines, JSON lines, tables, archives, streams.

plan_inputs(inputs)    files, folders, globs, URIs → `Plan`: chunks of parts, pure data
read_blocks(chunk)     the documents of a chunk, as blocks of a few megabytes
check_unchanged(plan)  that its local files are still the same once they were read
memory.iterator_blocks the same from Python strings or bytes
"""

from raybpe.inputs.documents import ReadStats
from raybpe.inputs.pieces import Cutter
from raybpe.inputs.plan import STDIN, Chunk, Part, Plan, Source
from raybpe.inputs.planning import plan_inputs
from raybpe.inputs.read import read_blocks
from raybpe.inputs.unchanged import check_unchanged

__all__ = [
    "STDIN",
    "Chunk",
    "Cutter",
    "Part",
    "Plan",
    "ReadStats",
    "Source",
    "check_unchanged",
    "plan_inputs",
    "read_blocks",
]
