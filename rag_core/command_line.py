"""Command lines: parsers whose complaints are one line and whose help shows only what says something."""

from __future__ import annotations

import argparse
from typing import Any

from rag_core.errors import UsageError


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the description's line breaks and shows the defaults that say something."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS) or "default" in text:
            return text
        return f"{text} (default: %(default)s)".strip()


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, exit code 2."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{message} (see {self.prog} --help)")
