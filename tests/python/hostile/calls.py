"""Makes hostile calls in this process. Started by watch.py, or by hand to repeat a call."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import itertools
import mmap
import os
import pathlib
import resource
import struct
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import baregrad as bg
from hostile import instances, objects
from hostile.arguments import Draw
from hostile.clock import LIMIT, Clock
from hostile.surface import Target, targets

MEMORY = 192 << 20  # of tensors
ADDRESSES = 3 << 30  # of the process
# Messages of C++ libraries, which mean nothing to a Python programmer.
INTERNAL = ("std::", "vector::", "basic_string", "bad_any", "bad optional", "map::at", "::_M_")
INTERNAL += ("nanobind::", "__shared_ptr", "unordered_map", "mutex", "Unable to convert")
# Other messages are allowed: those of Python itself, or of the passed objects.
WITHOUT_TEXT = (MemoryError, StopIteration, NotImplementedError, AssertionError, KeyError)


def settle() -> None:
    """Restores the global settings that a call may have changed."""
    bg.autograd._autograd._set_grad_enabled(True)
    bg.memory.set_limit(MEMORY)
    bg.set_num_threads(1)
    if bg.profile.is_recording():
        bg.profile.stop()
    bg.set_printoptions(precision=4, threshold=1000, edgeitems=3, linewidth=80)


def make_surroundings() -> None:
    """What calls find in the working folder, so that work which is not ours costs little.

    Data sets of 20 pictures where the loaders look first, as each call of them reads one, and a
    `dot` before Graphviz's, which would take longer than all other calls together.
    """
    program = pathlib.Path("bin", "dot")
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o755)
    os.environ["PATH"] = f"{program.parent.resolve()}{os.pathsep}{os.environ.get('PATH', '')}"
    pixels = bytes(i % 251 for i in range(20 * 28 * 28))
    labels = bytes(i % 10 for i in range(20))
    for name in ("mnist", "fashion"):
        folder = pathlib.Path("data", name)
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("train", "t10k"):
            images = struct.pack(">4B3I", 0, 0, 8, 3, 20, 28, 28) + pixels
            (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 20) + labels)


def unusual(error: BaseException) -> str:
    """The reason why an error is not acceptable; empty for a good one."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001: a KeyError shows its key, which may be one of ours
        text = "?"
    if isinstance(error, objects.Hostility):
        return ""
    if not isinstance(error, Exception):
        return "it is no Exception"
    if isinstance(error, SystemError):
        return "it is a SystemError"
    if isinstance(error, RecursionError):
        return "it is a RecursionError"
    if not text and not isinstance(error, WITHOUT_TEXT):
        return "it has no message"
    for word in INTERNAL:
        if word in text:
            return f"its message speaks of {word}"
    return ""


def poke(result: Any, draw: Draw) -> None:
    """Uses a result as a program would."""
    # A call that returned while an error was pending fails here.
    if draw.chance(0.5) or result is None:
        return
    kind = draw.below(4)
    if kind == 0:
        repr(result)
    elif kind in (1, 2) and isinstance(result, bg.Tensor):
        # An expanded view can have more elements than anyone can add up in a day.
        if result.numel() > 1 << 20:
            return
        total = result.sum()
        if kind == 2 and total.requires_grad:
            total.backward()
    elif kind == 3 and hasattr(result, "__next__"):
        list(itertools.islice(result, 3))


class Caller:
    """Calls one target."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.seed = seed
        self.draw = Draw()
        self.make: Callable[[], Any] = lambda: None
        if target.owner is not None and target.kind != "class":
            name = target.name[: target.name.rindex("." + target.attribute)]
            self.make = instances.maker(name, target.owner)

    def prepare(self, number: int) -> tuple[Callable[[], Any], Draw, list[Any]]:
        """The call with this number: the callable and its arguments."""
        target = self.target
        draw = self.draw
        draw.begin(f"{self.seed}/{target.name}/{number}")
        args, keywords = ([], {}) if target.attribute_only else draw.call(target.signatures)
        shown: list[Any] = [*args, *keywords.items()]
        if target.kind in ("function", "class"):
            return lambda: target.value(*args, **keywords), draw, shown
        self_ = self.make()
        owner = target.owner
        assert owner is not None
        if target.name.startswith("baregrad.Tensor.") and draw.chance(0.8):
            self_ = draw.choice([draw.good_tensor, draw.tensor])()
        chance = draw.uniform()
        if chance < 0.03:
            self_ = owner.__new__(owner)  # type: ignore[call-overload]
        elif chance < 0.05:
            self_ = draw.nasty()
        shown.insert(0, self_)
        name = target.attribute
        if target.kind == "get":
            return lambda: getattr(self_, name), draw, shown
        if target.kind == "delete":
            return lambda: delattr(self_, name), draw, shown
        if target.kind == "set":
            value = draw.nasty()
            shown = [self_, value]

            def assign() -> None:
                setattr(self_, name, value)

            return assign, draw, shown
        if chance < 0.05:
            return lambda: getattr(owner, name)(self_, *args, **keywords), draw, shown
        # The same object twice.
        if args and chance < 0.15:
            args[draw.below(len(args))] = self_
        return lambda: getattr(self_, name)(*args, **keywords), draw, shown

    def call(self, number: int) -> BaseException | None:
        """Makes one call; the error that came out of it."""
        try:
            run, draw, _ = self.prepare(number)
        except Exception:  # noqa: BLE001: the subject is the call, not its arguments
            return None
        try:
            poke(run(), draw)
        except BaseException as error:  # noqa: BLE001: looked at by the caller
            return error
        return None


def describe(value: Any, depth: int = 4) -> str:
    """A short text, made without calling methods of the value."""
    kind = type(value)
    if (kind is tuple or kind is list) and depth > 0:
        return f"{kind.__name__}({', '.join(describe(v, depth - 1) for v in value[:6])})"
    if kind in (int, float, str, bool, type(None), bytes, slice, range):
        text = ascii(value) if not isinstance(value, int) or abs(value) < 2**80 else "a huge int"
        return text[:60]
    if kind is bg.Tensor or kind is bg.nn.Parameter:
        with contextlib.suppress(Exception):
            return f"{value.dtype}{list(value.shape)}"
    return f"<{kind.__module__}.{kind.__qualname__}>"


class Report:
    """Writes lines to a file, and the number of the running call to shared memory for the watcher."""

    def __init__(self, path: str | None, progress: str | None) -> None:
        self.file = open(path, "a", encoding="utf-8") if path else sys.stdout
        self.map = None
        if progress:
            with open(progress, "r+b") as file:
                self.map = mmap.mmap(file.fileno(), 16)

    def at(self, target: int, number: int) -> None:
        if self.map is not None:
            struct.pack_into("qq", self.map, 0, target, number)

    def line(self, *fields: Any) -> None:
        print(*fields, sep="\t", file=self.file, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="by name; all where none is given")
    parser.add_argument("--call", type=int, help="the number of the only call to make")
    parser.add_argument("--first", type=int, default=0, help="of the first target")
    parser.add_argument("--calls", type=int, default=100, help="of each target, from 0")
    parser.add_argument("--show", action="store_true", help="print calls and tracebacks")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a call may take")
    parser.add_argument("--report")
    parser.add_argument("--progress")
    options = parser.parse_args()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    report = Report(options.report, options.progress)
    if not options.show:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    make_surroundings()
    clock = Clock()
    wanted = set(options.target or ())
    chosen = [(i, t) for i, t in enumerate(targets()) if not wanted or t.name in wanted]
    if options.call is not None:
        options.first, options.calls = options.call, options.call + 1
    for i, target in chosen:
        caller = Caller(target, options.seed)
        first_began = clock.now()
        for number in range(options.first, options.calls):
            report.at(i, number)
            settle()
            if options.show:
                _, _, shown = caller.prepare(number)
                print(number, target.name, ", ".join(map(describe, shown)), flush=True)
            began = clock.now()
            error = caller.call(number)
            took = clock.now() - began
            if took > options.limit:
                report.line("error", target.name, number, f"it took {took:.1f} s", "")
            if error is None:
                continue
            why = unusual(error)
            if options.show:
                print("  ", "".join(traceback.format_exception_only(error)).strip()[:2000])
            if why:
                text = ascii(str(error))[:300]
                report.line("error", target.name, number, why, f"{type(error).__name__}: {text}")
        seconds = f"{clock.now() - first_began:.2f}"
        report.line("done", target.name, options.calls - options.first, seconds)
        options.first = 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
