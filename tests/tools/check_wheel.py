#!/usr/bin/env python3
"""Checks a wheel: its size, what is inside, and that it works in an empty environment.

Usage: check_wheel.py WHEEL     (run by an interpreter that has pip)
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

MAX_BYTES = 6_000_000
EXPECTED = re.compile(
    r"baregrad/(\w+/)*(\w+\.pyi?|py\.typed)"
    r"|baregrad/_core\.[\w-]+\.so"
    r"|baregrad/backends/libbaregrad_sim\.so"
    r"|baregrad-[0-9.]+\.dist-info/(METADATA|WHEEL|RECORD|licenses/LICENSE)")
NEEDED = ["baregrad/__init__.py", "baregrad/py.typed", "baregrad/nn/__init__.py"]

# No NumPy here: the package needs nothing but itself.
STEP = """
import sys
import baregrad as bg

assert "numpy" not in sys.modules
bg.manual_seed(0)
model = bg.nn.Linear(4, 3)
optimizer = bg.optim.SGD(model.parameters(), lr=0.1)
x, y = bg.randn(8, 4), bg.zeros(8, dtype=bg.int64)
losses = []
for _ in range(2):
    optimizer.zero_grad()
    loss = bg.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[1] < losses[0], losses
print(f"check_wheel: baregrad {bg.__version__} from {bg.__file__}, loss {losses[0]:.4f} -> {losses[1]:.4f}")
"""


def check_contents(wheel: pathlib.Path) -> None:
    size = wheel.stat().st_size
    if size > MAX_BYTES:
        sys.exit(f"check_wheel: {wheel.name} has {size:,} bytes, the limit is {MAX_BYTES:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if strangers := [name for name in names if not EXPECTED.fullmatch(name)]:
        sys.exit(f"check_wheel: {wheel.name} holds what no user needs: {', '.join(strangers)}")
    missing = [name for name in NEEDED if name not in names]
    if not any(name.startswith("baregrad/_core") and name.endswith(".pyi") for name in names):
        missing.append("the stubs of baregrad._core")
    if missing:
        sys.exit(f"check_wheel: {wheel.name} lacks {', '.join(missing)}")
    print(f"check_wheel: {wheel.name}: {size:,} bytes, {len(names)} files")


def check_use(wheel: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = f"{folder}/bin/python"
        subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet",
                        "--disable-pip-version-check", "--no-index", "--no-deps", str(wheel)], check=True)
        # -I: neither PYTHONPATH nor the current folder may help.
        subprocess.run([python, "-I", "-c", STEP], check=True, cwd=folder)


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wheel = pathlib.Path(sys.argv[1]).resolve()
    check_contents(wheel)
    check_use(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
