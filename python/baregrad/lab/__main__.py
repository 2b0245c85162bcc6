"""Writes the records of `baregrad lab` as one HTML page or as the Markdown of docs/lab."""

from __future__ import annotations

import argparse
import sys

from baregrad.lab.report import write_report


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m baregrad.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="pictures and one HTML page, into the folder of a run")
    report.add_argument("folder")
    docs = commands.add_parser("docs", help="the same as Markdown pages with their records, into another folder")
    docs.add_argument("folder")
    docs.add_argument("out")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    chosen = _arguments(arguments)
    try:
        if chosen.command == "report":
            print(write_report(chosen.folder))
        else:
            from baregrad.lab.docs import write_docs

            print(write_docs(chosen.folder, chosen.out))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print("lab: pictures are drawn with matplotlib, which is not installed; `make lab` sets it up", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
