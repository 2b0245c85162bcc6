"""The repository's root and its files, shared by the repository checks."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def list_files(root: pathlib.Path = ROOT) -> list[str]:
    """Paths relative to the root, tracked or new, without what git ignores."""
    script = root / "scripts" / "list_files.sh"
    done = subprocess.run([str(script)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
