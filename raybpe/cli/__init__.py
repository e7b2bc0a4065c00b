"""The command line: parse, call, show. Help imports neither Ray, Numba nor Arrow."""

import atexit
import contextlib
import io
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            # Tokens and file names may hold what the terminal's encoding, or any, lacks.
            stream.reconfigure(errors="backslashreplace")
    try:
        from raybpe.cli.app import run

        code = run()
    except KeyboardInterrupt:  # while importing
        print("interrupted", file=sys.stderr)
        code = 130
    # Leave as Python does, but do not take a thousand modules apart, which takes 0.1 s.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
