#!/usr/bin/env python3
"""Builds the libtorch peer of the C++ benchmarks against the PyTorch of the Python that runs this.

    build.py OUTPUT.so

Does nothing when the output is newer than its sources and was built against the same version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / "peer.cpp", HERE / "peer.h", HERE / "build.py"]


def command(output: Path) -> tuple[list[str], str]:
    """Returns the compiler command, and the version it builds against."""
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths

    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    words = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-w",
             f"-D_GLIBCXX_USE_CXX11_ABI={abi}", str(HERE / "peer.cpp"), "-o", str(output)]
    words += [f"-isystem{path}" for path in include_paths()]
    for path in library_paths():
        words += [f"-L{path}", f"-Wl,-rpath,{path}"]
    return [*words, "-ltorch", "-ltorch_cpu", "-lc10"], torch.__version__


def is_fresh(output: Path, note: Path, version: str) -> bool:
    if not output.exists() or not note.exists() or note.read_text() != version:
        return False
    return all(source.stat().st_mtime <= output.stat().st_mtime for source in SOURCES)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    output = Path(sys.argv[1])
    note = output.with_suffix(".version")
    words, version = command(output)
    if is_fresh(output, note, version):
        return 0
    output.parent.mkdir(parents=True, exist_ok=True)
    print(f"building the libtorch peer against PyTorch {version} (half a minute)", file=sys.stderr)
    done = subprocess.run(words, check=False)
    if done.returncode == 0:
        note.write_text(version)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
