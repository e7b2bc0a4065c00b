"""The command line: parse, call, show. Help imports neither Ray, Numba nor Arrow."""

import atexit
import contextlib
import io
import os
import signal
import sys
from typing import Any, NoReturn

_INTERRUPTED = 130
_TERMINATED = 143


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    terminated = []

    def terminate(*_: Any) -> None:
        """End as after Ctrl-C: what was started is ended, what was saved stays."""
        terminated.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
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
        code = _INTERRUPTED
    if terminated and code == _INTERRUPTED:
        code = _TERMINATED
    # Leave as Python does, but do not take a thousand modules apart, which takes 0.1 s.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
