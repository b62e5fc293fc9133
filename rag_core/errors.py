"""The two kinds of fault that are the caller's, their exit codes, and the one way a command reports them.

Everything else is a fault of ours: it keeps its traceback and exits with 1.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence

from rag_core.masking import mask

EXIT_DONE = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_BAD_DATA = 3
EXIT_REGRESSION = 10
EXIT_NOT_COMPARABLE = 11
EXIT_STAGE_FAILED = 12

# What a path can be at fault for, besides the kinds of OSError that have a class.
_PATH_FAULTS = (errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS)


class UsageError(Exception):
    """A wrong path, option or name, or an output directory that is refused (exit code 2)."""


class UnreachableError(UsageError):
    """A store that could not be used: no client, no network, no right; later it may serve (exit 2)."""


class DataError(ValueError):
    """Input that cannot be used, named by file, record and reason (exit code 3)."""


class UnknownModelError(UsageError, ValueError):
    """A model name that is neither built in, nor a directory, nor a URL, nor a hub id (exit code 2)."""


def run_command(
    main: Callable[[Sequence[str] | None], int | None],
    argv: Sequence[str] | None = None,
    wording: Callable[[str, int], str] = lambda text, code: f"error: {text}",
) -> int:
    """Run a command's `main(argv)`; turn the caller's faults into one line on stderr and an exit code.

    Returns the exit code: `main`'s own (None is 0), 2 for `UsageError`, 3 for `DataError` and any
    other `ValueError` raised by a loader on bad data. Internal errors propagate with their traceback.
    `wording` makes the line from the complaint and the code.
    """
    try:
        return main(argv) or EXIT_DONE
    except (UsageError, FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        complaint, code = _complaint(error), EXIT_USAGE
    except OSError as error:
        if error.errno not in _PATH_FAULTS:
            raise
        complaint, code = _complaint(error), EXIT_USAGE
    except DataError as error:
        complaint, code = _complaint(error), EXIT_BAD_DATA
    except KeyboardInterrupt:
        complaint, code = "interrupted; start the same command again to go on", 130
    print(wording(mask(complaint), code), file=sys.stderr)
    return code


def _complaint(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return one_line(f"{error.filename}: {error.strerror}")
    return one_line(str(error))


def one_line(text: str) -> str:
    """`text` as a terminal may be given it: no line breaks, and what cannot be printed (a file's name
    may hold escape sequences, or bytes that are no UTF-8) spelt out.
    """
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
