"""The commands, and what happens when one fails.

Exit codes: 0 done; 1 the run failed; 2 the command line is wrong; 130 interrupted, 143 terminated.
An error is one readable paragraph on standard error; `--debug` adds the traceback. A reader that
closes standard output early (`| head`) is no error.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any, TextIO

import typer

from raybpe import __version__
from raybpe.cli import audit, count, dataset, doctor, patterns, train
from raybpe.errors import RaybpeError, UsageError

# Typer carries its own copy of Click from some version on; both have this family.
_CommandLineError: Any = typer.BadParameter.__mro__[2]  # BadParameter, UsageError, ClickException

app = typer.Typer(
    name="raybpe",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"raybpe {__version__}")
        raise typer.Exit


@app.callback()
def raybpe(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Byte-pair-encoding tokenizers at any scale: exact, fast, on one machine or on Ray."""


app.command()(train.train)
app.command()(count.count)
app.add_typer(count.counts_app, name="counts")
app.command()(dataset.encode)
app.command()(dataset.decode)
app.command()(audit.inspect)
app.command()(audit.compare)
app.command()(audit.export)
app.command()(patterns.patterns)
app.command()(doctor.doctor)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    stdout = sys.stdout
    try:
        code = app(given, prog_name="raybpe", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:
            _say_interrupted(given)
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _nobody_reads(stdout)
    except SystemExit:
        if sys.stdout is stdout:
            raise
        return _nobody_reads(stdout)  # Typer saw the broken pipe first and put a wrapper there
    except (KeyboardInterrupt, typer.Abort):
        _say_interrupted(given)
        return 130
    except _CommandLineError as error:
        message = error.format_message()
        if message:  # none where help was shown for want of a command
            _complain(error, f"{message} ({_help_of(error)} explains)", debug)
        return 2
    except UsageError as error:
        _complain(error, str(error), debug)
        return 2
    except RaybpeError as error:
        _complain(error, str(error), debug)
        return 1
    except MemoryError as error:
        _complain(error, "this machine has too little memory for the run", debug)
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _complain(error, "no space is left where the output goes; free some", debug)
            return 1
        _complain(
            error,
            f"{type(error).__name__}: {error}. This was not foreseen and may be a fault of raybpe; "
            "the same command with --debug shows where it happened",
            debug,
        )
        return 1


def _say_interrupted(given: list[str]) -> None:
    # What `train` and `count` have saved they say themselves.
    more = "; the same command goes on after the shards that are written"
    print(f"interrupted{more if given[:1] == ['encode'] else ''}", file=sys.stderr)


def _nobody_reads(stdout: TextIO) -> int:
    sys.stdout = stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())  # or Python complains at exit
    return 0


def _help_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'raybpe'} --help"


def _complain(error: BaseException, message: str, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exception(error)
    print(f"error: {message}", file=sys.stderr)
