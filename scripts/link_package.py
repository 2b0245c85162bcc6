#!/usr/bin/env python3
"""Makes this interpreter (.venv's) find the package in a build folder: link_package.py FOLDER

Adds a line to a .pth file of site-packages instead of a copy: a later build takes effect at once.
Writes only what is missing.
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
        # Another interpreter: this one has already read its .pth files.
        subprocess.run([sys.executable, "-B", "-c", "import baregrad"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
