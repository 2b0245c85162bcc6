#!/usr/bin/env python3
"""Runs mypy's stubtest over the package and fails for what it finds, but for what it cannot know.

stubtest reads signatures with `inspect`, which knows nothing of nanobind's functions and classes.
Their stubs are written from their own signatures, so that these reports are about nothing:
"""

import re
import subprocess
import sys

# One reason each.
IGNORED = [
    # nanobind's function type is its own, and no types.FunctionType.
    r" is not a function$",
    # Classes of the extension are made by nanobind's metaclass and share its one __init__.
    r" is inconsistent, metaclass differs$",
    r"\.__init__ is inconsistent, stub does not have \*args parameter \"args\"$",
    # Every class with a C layout is one; the decorator is not in typing yet.
    r" is a disjoint base at runtime, but isn't marked with @disjoint_base in the stub$",
]


def main() -> int:
    settings = ["--concise", "--mypy-config-file", "pyproject.toml"]
    command = [sys.executable, "-B", "-m", "mypy.stubtest", *settings, "baregrad"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    real = [line for line in lines if not any(re.search(rule, line) for rule in IGNORED)]
    if real or (done.returncode != 0 and not lines):
        print("\n".join(real) or f"stubtest ended with status {done.returncode}", file=sys.stderr)
        print(f"check_stubs: {len(real)} problems", file=sys.stderr)
        return 1
    print(f"check_stubs: the stubs are true ({len(lines)} reports about nanobind itself)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
