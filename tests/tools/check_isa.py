#!/usr/bin/env python3
"""Checks that no instruction set leaks out of the objects that are compiled for it.

Usage: check_isa.py BUILD_DIR

The kernels are compiled once per instruction set, and one binary holds all of them. Two mistakes
would make it die with SIGILL on an older CPU, and no test on a new CPU would notice:

1. An inline function that is not in the instruction set's own namespace (std::min, say) is emitted
   by several objects under one name; the linker keeps one copy, perhaps the AVX-512 one, and
   baseline code then calls it. So every weak symbol of a kernel object must carry the object's
   namespace in its name, and a kernel object must run nothing when the library is loaded.
2. A flag on the wrong target widens an object that runs on every CPU. So every instruction of an
   object is decoded as far as its encoding, and must be one the object is allowed to hold.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

# Encodings from the oldest to the newest. SSE2 is what every x86-64 CPU has.
SSE2, SSE4, VEX, EVEX = range(4)
ENCODING_NAMES = ["SSE2", "SSE3/SSSE3/SSE4", "VEX (AVX, AVX2, FMA, BMI)", "EVEX (AVX-512)"]


@dataclasses.dataclass(frozen=True)
class Isa:
    """One set of kernel objects: its Highway namespaces and the newest encoding it may hold."""

    namespaces: tuple[str, ...]
    ceiling: int


ISAS = {
    "scalar": Isa(("N_SCALAR", "N_EMU128"), SSE2),
    "sse4": Isa(("N_SSE4",), SSE4),
    "avx2": Isa(("N_AVX2",), VEX),
    "avx512": Isa(("N_AVX3", "N_AVX3_DL", "N_AVX3_ZEN4", "N_AVX3_SPR"), EVEX),
}
KERNEL_FOLDER = re.compile(r"baregrad_(?:(?:small_)?kernels|ladder)_(\w+)\.dir")
LIBRARY_FOLDER = re.compile(r"baregrad\w*\.dir")
# Programs that use the library: they may contain loops for one CPU, and nothing links to them.
DEFAULT_EXCLUDES = ["*test*", "*bench*", "*fuzz*", "*peer*"]

# A pointer to the exception personality that compilers emit into every object: data, always equal.
HARMLESS_SYMBOL = re.compile(r"DW\.ref\.__gxx_personality_v0")
LOAD_TIME_CODE = re.compile(r"_GLOBAL__(sub_)?I_")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")

LEGACY_PREFIXES = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3}


def encoding_of(code: bytes) -> int:
    """The encoding of one 64-bit mode instruction, from its bytes."""
    at = 0
    mandatory = 0
    while at < len(code) and code[at] in LEGACY_PREFIXES:
        if code[at] in (0x66, 0xF2, 0xF3):
            mandatory = code[at]
        at += 1
    rest = code[at:]
    if not rest:
        return SSE2
    # In 64-bit mode these bytes have no other meaning; 8F is POP unless its second byte marks XOP.
    if rest[0] == 0x62:
        return EVEX
    if rest[0] in (0xC4, 0xC5) or (rest[0] == 0x8F and len(rest) > 1 and rest[1] & 0x1F >= 8):
        return VEX
    if 0x40 <= rest[0] <= 0x4F:  # REX
        rest = rest[1:]
    if len(rest) < 2 or rest[0] != 0x0F:
        return SSE2
    if rest[1] in (0x38, 0x3A):
        return SSE4
    newer = {
        0x66: {0x7C, 0x7D, 0xD0},  # haddpd hsubpd addsubpd
        0xF2: {0x12, 0x7C, 0x7D, 0xD0, 0xF0},  # movddup haddps hsubps addsubps lddqu
        0xF3: {0x12, 0x16, 0xB8},  # movsldup movshdup popcnt
    }
    return SSE4 if rest[1] in newer.get(mandatory, set()) else SSE2


def run_tool(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_isa: {' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def demangle(names: list[str]) -> dict[str, str]:
    if not names:
        return {}
    return dict(zip(names, run_tool("c++filt", *names).splitlines()))


def check_symbols(obj: pathlib.Path, isa_name: str) -> list[str]:
    """Symbols of a kernel object that another object could share, or that run at load time."""
    isa = ISAS[isa_name]
    # Length-prefixed, as in a mangled name: 6N_AVX3 is not a part of 10N_AVX3_DL.
    marks = [f"{len(name)}{name}" for name in isa.namespaces]
    shared, load_time = [], []
    for line in run_tool("nm", "--defined-only", "--format=posix", str(obj)).splitlines():
        name, kind = line.split()[:2]
        if kind in "WVuwv" and not HARMLESS_SYMBOL.fullmatch(name):
            if not any(mark in name for mark in marks):
                shared.append(name)
        if LOAD_TIME_CODE.match(name) and isa.ceiling > SSE2:
            load_time.append(name)
    plain = demangle(shared)
    problems = [
        f"{obj}: weak symbol outside {isa.namespaces[0]}: {plain[name]}\n"
        f"    another object may define it too, and the linker may keep this {isa_name} copy: make"
        " it static, or move it into HWY_NAMESPACE"
        for name in shared
    ]
    problems += [
        f"{obj}: {name} runs {isa_name} code when the library is loaded, on any CPU: give the file"
        " no global that needs a constructor"
        for name in load_time
    ]
    return problems


def check_instructions(obj: pathlib.Path, ceiling: int) -> tuple[list[str], int]:
    """Functions of an object with a newer encoding, and the number of instructions read."""
    problems = []
    count = 0
    function, reported = "?", None
    listing = run_tool("objdump", "--disassemble", "--wide", "--demangle", str(obj))
    if "elf64-x86-64" not in listing[:400]:
        return [f"{obj}: not an x86-64 object"], 0
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            function = found[1]
        elif found := INSTRUCTION.match(line):
            count += 1
            encoding = encoding_of(bytes.fromhex(found[1]))
            # One line per function is enough.
            if encoding > ceiling and reported != function:
                reported = function
                problems.append(
                    f"{obj}: {ENCODING_NAMES[encoding]} instruction in an object that may hold"
                    f" {ENCODING_NAMES[ceiling]} at most\n    {found[2]}\n    in {function}"
                )
    return problems, count


def find_objects(build: pathlib.Path, excludes: list[str]) -> dict[pathlib.Path, str | None]:
    """Objects of the library, with the name of their instruction set (None: baseline)."""
    objects = {}
    for obj in sorted(build.rglob("*.o")):
        folder = next((p for p in obj.relative_to(build).parts if LIBRARY_FOLDER.fullmatch(p)), None)
        if folder is None:
            continue
        kernel = KERNEL_FOLDER.fullmatch(folder)
        if kernel:
            objects[obj] = kernel[1]
        elif not any(fnmatch.fnmatch(folder, pattern) for pattern in excludes):
            objects[obj] = None
    return objects


def check(build: pathlib.Path, excludes: list[str]) -> tuple[list[str], str]:
    """All problems under a build folder, and a line that summarises the check."""
    objects = find_objects(build, excludes)
    present = {isa for isa in objects.values() if isa is not None}
    problems = [f"{build}: no objects of baregrad_kernels_{isa}" for isa in ISAS.keys() - present]
    problems += [f"{build}: baregrad_kernels_{isa}: unknown to ISAS" for isa in present - ISAS.keys()]
    if None not in objects.values():
        problems.append(f"{build}: no baseline objects of the library")
    if problems:
        return sorted(problems), ""

    def check_one(item: tuple[pathlib.Path, str | None]) -> tuple[list[str], int]:
        obj, isa = item
        found, count = check_instructions(obj, SSE2 if isa is None else ISAS[isa].ceiling)
        return found + (check_symbols(obj, isa) if isa is not None else []), count

    total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found, count in pool.map(check_one, objects.items()):
            problems += found
            total += count
    if total == 0:
        problems.append(f"{build}: no instructions in any object: built with LTO?")
    baseline = sum(isa is None for isa in objects.values())
    summary = f"{total} instructions, {baseline} baseline and {len(objects) - baseline} kernel objects"
    return problems, summary


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks that no instruction set leaks.")
    parser.add_argument("build", type=pathlib.Path, help="folder of an optimised CMake build")
    parser.add_argument("--exclude", action="append", default=[], help="target folders to leave out")
    args = parser.parse_args()
    problems, summary = check(args.build, DEFAULT_EXCLUDES + args.exclude)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"check_isa: {len(problems)} problems", file=sys.stderr)
        return 1
    print(f"check_isa: {summary}: no leak")
    return 0


if __name__ == "__main__":
    sys.exit(main())
