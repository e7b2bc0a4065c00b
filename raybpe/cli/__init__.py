"""The command line: parse, call, show. Help imports neither Ray, Numba nor Arrow."""


def main() -> None:
    """Run the command line and exit with its code."""
    from raybpe.cli.app import run

    raise SystemExit(run())
