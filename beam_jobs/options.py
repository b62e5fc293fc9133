"""Options that all jobs share, and Beam's options."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    StandardOptions,
)
from apache_beam.runners.runner import PipelineRunner

from beam_jobs.stores import BeamBackend
from beam_jobs.transforms.progress import complaint, set_up_logging, speaks_json
from rag_core import files
from rag_core.command_line import HelpFormatter, Parser
from rag_core.errors import EXIT_INTERNAL, UsageError
from rag_core.masking import mask, masked_options, masked_words
from runners.profiles import LOCAL_RUNNERS, check_runner, profile_flags


def job_parser(job: str, description: str) -> Parser:
    """A parser with the options every job has; the job adds its own."""
    parser = Parser(
        prog=f"python -m beam_jobs.{job}",
        description=description,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
        epilog="Beam's own options (--runner, --direct_num_workers, --temp_location, …) may follow.",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="run directory to write")
    parser.add_argument("--overwrite", action="store_true", help="replace a former run of other content")
    parser.add_argument(
        "--dry_run",
        type=_truth,
        nargs="?",
        const=True,
        default=False,
        help="build the pipeline only",
    )
    parser.add_argument(
        "--profile",
        action="append",
        metavar="NAME",
        help="Beam options from runners/NAME.toml (default: local)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="json: one object a line, on stderr"
    )
    return parser


def _truth(word: str) -> bool:
    if word.lower() in ("true", "yes", "1"):
        return True
    if word.lower() in ("false", "no", "0"):
        return False
    raise argparse.ArgumentTypeError(f"{word!r} is neither true nor false")


def parse_job(parser: Parser, argv: Sequence[str] | None) -> tuple[argparse.Namespace, PipelineOptions]:
    """Split a command line into the job's options and Beam's. Raises UsageError on anything unknown.

    `runs_here` is added to the job's options: whether this machine does the work.
    """
    masked_words(sys.argv[1:] if argv is None else argv)  # from here on no line shows their secrets
    args, rest = parser.parse_known_args(argv)
    set_up_logging(args.log_format)
    _refuse_unknown(rest, parser)
    try:
        args.profile = _one_profile(args.profile or ["local"])
        flags = [*profile_flags(args.profile, rest), *rest, *(["--dry_run=True"] if args.dry_run else [])]
        options = PipelineOptions(flags)
        check_runner(options.view_as(StandardOptions).runner or "FnApiRunner")
        _check_runner_options(options, args.dry_run)
    except ValueError as error:
        raise UsageError(str(error)) from error
    args.runs_here = runner_name(options) in LOCAL_RUNNERS
    FileSystems.set_options(options)  # s3:// needs its endpoint and keys before there is a pipeline
    register_file_systems()
    return args, options


def _one_profile(names: Sequence[str]) -> str:
    for name in names:
        if name != names[0]:
            raise ValueError(f"--profile {names[0]} and --profile {name}: give one")
    return names[0]


def launch_options(options: PipelineOptions) -> dict[str, Any]:
    """Beam's options that differ from their defaults, as they may be recorded: secrets masked."""
    return masked_options(options.get_all_options(drop_default=True))


def runner_name(options: PipelineOptions) -> str:
    return (options.view_as(StandardOptions).runner or "FnApiRunner").rsplit(".", 1)[-1]


def _check_runner_options(options: PipelineOptions, dry_run: bool) -> None:
    """Raise ValueError naming what a cluster's runner still needs, before it fails in the middle."""
    name = runner_name(options)
    setup = options.view_as(SetupOptions)
    setup.setup_file = setup.setup_file or None  # `--setup_file=`: the container image has the package
    if setup.save_main_session is None:
        setup.save_main_session = (
            False  # Dataflow's default: a pickle of __main__, where nothing of ours lies
        )
    workers = options.view_as(DirectOptions).direct_num_workers
    if workers < 0:
        raise ValueError(f"--direct_num_workers {workers}: must not be negative (0: one a core)")
    if name == "DataflowRunner":
        if setup.setup_file and not os.path.isfile(setup.setup_file):
            raise ValueError(
                f"--setup_file {setup.setup_file}: no such file; start from the checkout, or give "
                "--setup_file= and an --sdk_container_image that holds the package"
            )
        cloud = options.view_as(GoogleCloudOptions)
        missing = [f"--{o}" for o in ("project", "region", "temp_location") if not getattr(cloud, o)]
        if missing:
            raise ValueError(f"DataflowRunner needs {', '.join(missing)}")
    elif name not in LOCAL_RUNNERS and not dry_run and not options.view_as(PortableOptions).job_endpoint:
        # Without an endpoint Beam would download a job server.
        raise ValueError(f"{name} needs --job_endpoint=HOST:PORT of a running job server")


def _refuse_unknown(flags: list[str], parser: Parser) -> None:
    """Beam drops flags it does not know with a warning; a mistyped option must not vanish so."""
    beam = Parser(prog=parser.prog, add_help=False, allow_abbrev=False)
    known: set[str] = set()
    for options in PipelineOptions.__subclasses__():
        # Two of Beam's option classes may declare the same flag; what counts is that one of them does.
        probe = Parser(add_help=False)
        options._add_argparse_args(probe)
        for action in probe._actions:
            if not known.intersection(action.option_strings):
                known.update(action.option_strings)
                beam._add_action(action)
    _, unknown = beam.parse_known_args(flags)
    if unknown:
        parser.error(f"unknown option: {' '.join(masked_words(unknown))}")


def make_runner(options: PipelineOptions) -> PipelineRunner | str:
    """The runner object for local work, else Beam's name for it.

    Beam's own DirectRunner first tries to download another runner's server; the in-memory runner is
    taken directly instead.
    """
    if runner_name(options) in LOCAL_RUNNERS:
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner

        return FnApiRunner()
    return options.view_as(StandardOptions).runner


def register_file_systems() -> None:
    """Let `rag_core.files` serve gs:// and s3:// in this process (again in every worker)."""
    for scheme in ("gs", "s3"):
        files.register_backend(scheme, BeamBackend())
    _read_descriptions_once()


@functools.cache
def _read_descriptions_once() -> None:
    """Keep what boto3 reads for a client: Beam makes one for every call on s3://, 0.1 s of JSON each time."""
    with contextlib.suppress(ImportError):
        from botocore.loaders import JSONFileLoader

        load_once = functools.lru_cache(32)(JSONFileLoader().load_file)
        JSONFileLoader.load_file = lambda self, file_path: load_once(file_path)


def run_job(main: Any) -> None:
    """`if __name__ == "__main__"` of a job: run it, print faults in one line, exit with its code.

    Leaves by `os._exit`: some native thread pools hang at interpreter exit after a failed pipeline.
    """
    from rag_core.errors import run_command

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a file's name may be no text
    try:
        code = run_command(main, wording=complaint)
    except Exception:  # a fault of ours: its traceback, without the secrets that options may have put there
        code = EXIT_INTERNAL
        text = mask(traceback.format_exc())
        print(complaint(text, code) if speaks_json() else text, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
