#!/usr/bin/env python3
"""Makes the interpreter that runs this (.venv's) find the package in a build folder: link_package.py FOLDER

A line in a .pth file of site-packages, not a copy: a later build counts at once, and nothing can be
stale. Writes only what is not there yet.
"""

import pathlib
import subprocess
import sys
import sysconfig


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    link = pathlib.Path(sysconfig.get_path("purelib")) / "baregrad.pth"
    line = f"{folder}\n"
    if not link.exists() or link.read_text() != line:
        link.write_text(line)
        # Another interpreter: this one has read its .pth files already.
        subprocess.run([sys.executable, "-B", "-c", "import baregrad"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
