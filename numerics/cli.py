"""The command ``gradline``.

Exit codes: 0 all well, 1 a claim is refuted, 2 wrong usage or input, 3 something is undecided, 130 interrupted. A wrong
input gets one line on standard error. Heavy libraries are imported by the commands when they run.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from numerics.commands.check import check
from numerics.commands.derive import derive
from numerics.commands.figure import figure
from numerics.commands.latex import latex
from numerics.commands.laws import EPILOG as LAWS_EPILOG
from numerics.commands.laws import laws
from numerics.commands.report import report
from numerics.commands.simulate import EPILOG as SIMULATE_EPILOG
from numerics.commands.simulate import simulate
from numerics.commands.stop import EPILOG as STOP_EPILOG
from numerics.commands.stop import stop
from numerics.commands.verify import verify
from theory.errors import GradlineError

__all__ = ["app", "main", "run"]

_BROKEN_PIPE = 141  # 128 + SIGPIPE, as other commands have it
_INTERRUPTED = 130

#: What Typer raises for wrong usage; its public subclass `typer.BadParameter` names the family in every version.
_USAGE_ERRORS: tuple[Any, ...] = tuple(c for c in typer.BadParameter.__mro__ if hasattr(c, "format_message"))


class _StopError(Exception):
    """Ctrl-C or a closed pipe, kept from Typer, which would answer in its own way."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Group(TyperGroup):
    """The commands; an unknown one is answered with the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            near = get_close_matches(args[0], self.commands, 1, 0.0)[0]
            known = ", ".join(self.commands)
            raise typer.BadParameter(f"no such command {args[0]!r}; expected one of {known}; did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _StopError(_INTERRUPTED) from None
        except BrokenPipeError:
            raise _StopError(_BROKEN_PIPE) from None


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    help="Derive, verify and simulate the gradient-flow theory of attention.",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command()(derive)
app.command()(verify)
app.command(epilog=SIMULATE_EPILOG)(simulate)
app.command(epilog=STOP_EPILOG)(stop)
app.command()(check)
app.command()(figure)
app.command()(latex)
app.command(epilog=LAWS_EPILOG)(laws)
app.command()(report)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"gradline {version('gradline')}")
    except PackageNotFoundError:
        typer.echo("gradline (not installed)")
    raise typer.Exit()


@app.callback()
def _top(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        *most, last = ctx.command.commands  # type: ignore[attr-defined]
        known = f"{', '.join(most)} or {last}"
        raise typer.BadParameter(f"no command; expected {known}; see gradline --help")


def _usage_message(error: Any) -> str:
    """What is wrong with the usage, with the nearest option where one was mistyped."""
    name = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoSuchOption" and name and context is not None:
        known = [o for p in context.command.params for o in (*p.opts, *p.secondary_opts)]
        near = get_close_matches(name, [*known, "--help"], 1, 0.0)[0]
        return f"no such option {name}; did you mean {near}? see {context.command_path} --help"
    if type(error) is typer.BadParameter:
        return str(error.message)
    return str(error.format_message())


def _complain(message: str) -> None:
    """Print one line on standard error, whatever is in the message."""
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in message).split())
    if sys.stderr is not None:
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(f"gradline: error: {line}\n")
            sys.stderr.flush()


#: Names of the Python interface in messages of the library, as the command line spells them.
_NAMES = re.compile(
    r"\b(until_loss|until_time|width_(?:qk|ov)|imbalance_(?:qk|ov)|score_scale|query_kind|max_steps|rtol)\b"
)


def _as_options(message: str) -> str:
    """Name options where a message of the library names arguments.

    >>> _as_options("until_loss=5.0: expected a loss below 1.1; raise until_time")
    '--until-loss=5.0: expected a loss below 1.1; raise --until-time'
    """
    return _NAMES.sub(lambda found: "--" + found[0].replace("_", "-"), message)


def _mute_stdout() -> None:
    """Send what is left in the buffer of standard output nowhere, so that the interpreter's last flush can't fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _os_message(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def run(args: Sequence[str]) -> int:
    """Run one command line and return the exit code; messages go to standard error."""
    try:
        code = typer.main.get_command(app).main(list(args), "gradline", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(code or 0)
    except _USAGE_ERRORS as error:
        _complain(_usage_message(error))
    except (GradlineError, ValueError, TypeError, OverflowError) as error:
        _complain(_as_options(str(error)))
        return _gradline_code(error)
    except (_StopError, BrokenPipeError, SystemExit) as error:  # Typer and rich exit where a pipe is closed
        _mute_stdout()
        code = error.code if isinstance(error, _StopError) else _BROKEN_PIPE
        if code == _INTERRUPTED:
            _complain("interrupted, nothing was written")
        return code
    except OSError as error:
        _mute_stdout()
        _complain(_os_message(error))
    return 2


def _gradline_code(error: Exception) -> int:
    """3 where something could not be decided, 2 where the input was wrong or beyond the method."""
    return 3 if type(error).__name__ in ("UndecidedError", "ContradictionError") else 2


def main() -> None:
    """Entry point of ``gradline``."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
