"""The effect of compiler flags on the ladder's scalar rungs."""

from __future__ import annotations

from collections.abc import Callable

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

REFERENCE = "-O0"
INSTALLED = "this program"
ROUNDING = 2.0**-24  # the largest relative error of one rounding to float32


def _in_order(builds: list[Record], key: str) -> list[str]:
    """Values of a field, in the order of their first occurrence."""
    return list(dict.fromkeys(record[key] for record in builds))


class Builds:
    """All builds by rung and flags."""

    def __init__(self, experiment: Experiment) -> None:
        self.all = experiment.of("build")
        self.rungs = _in_order(self.all, "rung")
        self.flags = _in_order(self.all, "flags")
        self._by_name = {(record["rung"], record["flags"]): record for record in self.all}

    def get(self, rung: str, flags: str) -> Record | None:
        return self._by_name.get((rung, flags))

    def gain(self, experiment: Experiment, build: Record) -> float | None:
        """The speed as a multiple of that of the rung's reference."""
        reference = self.get(build["rung"], REFERENCE)
        if reference is None or reference is build:
            return None
        ratio = reference["median_ns"] / build["median_ns"]
        return experiment.derive(f"gain/{build['rung']}/{build['flags']}", ratio)

    def table(self, cell: Callable[[Record], str], caption: str, only_built: bool = False) -> Table:
        """A table with flags down and rungs across."""
        flags = [each for each in self.flags if not (only_built and each == INSTALLED)]
        rows = []
        for each in flags:
            found = [self.get(rung, each) for rung in self.rungs]
            name = each if each == INSTALLED else f"`{each}`"
            rows.append([name] + ["–" if build is None else cell(build) for build in found])
        return Table(["flags"] + self.rungs, rows, caption)


def _speed_picture(experiment: Experiment, builds: Builds) -> Picture:
    figure, axes = style.new_figure(height=4.2)
    width = 0.8 / len(builds.rungs)
    for index, rung in enumerate(builds.rungs):
        found = [(place, builds.get(rung, flags)) for place, flags in enumerate(builds.flags)]
        shift = (index - (len(builds.rungs) - 1) / 2) * width
        built = [(place + shift, each) for place, each in found if each is not None]
        speeds = [each["gflop_per_s"] for _, each in built]
        # Speed is inverse to time: its 10th percentile comes from the 90th of the time.
        low = [speed - each["flops"] / each["p90_ns"] for speed, (_, each) in zip(speeds, built, strict=True)]
        high = [each["flops"] / each["p10_ns"] - speed for speed, (_, each) in zip(speeds, built, strict=True)]
        places = [place for place, _ in built]
        axes.bar(places, speeds, width, yerr=[low, high], capsize=1.5, label=rung, **style.bar(index))
    axes.set_yscale("log")
    axes.set_ylim(bottom=min(each["flops"] / each["p90_ns"] for each in builds.all) / 2)
    peak = experiment.one("peak")
    if peak is not None:
        style.ceiling(axes, peak["gflop_per_s"], "multiply-adds at best, one thread")
        axes.set_ylim(top=peak["gflop_per_s"] * 2)
    axes.set_ylabel("GFLOP/s (log scale)")
    labels = [flags.replace(" -march=", "\n-march=\n") for flags in builds.flags]
    axes.set_xticks(range(len(builds.flags)), labels, fontsize=8)
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=min(len(builds.rungs), 4))
    caption = "Speed of each rung by the flags that it was built with; thin lines span the 10th to the 90th percentile."
    return Picture("flags", caption, figure)


def _time_table(experiment: Experiment, builds: Builds) -> Table:
    def cell(build: Record) -> str:
        gain = builds.gain(experiment, build)
        factor = "" if gain is None else f" ({text.times(gain)})"
        return text.time(build["median_ns"]) + factor

    return builds.table(cell, f"Time of one product, and how many times faster than `{REFERENCE}`.")


def _code_cell(build: Record) -> str:
    """Code size, and instructions by width if known."""
    size = text.size(build["code_bytes"])
    if "widest_bits" not in build:
        return size
    counts = [f"{build['scalar_instructions']} scalar"] if build["scalar_instructions"] else []
    for bits in (128, 256, 512):
        count = build[f"packed{bits}_instructions"]
        if count:
            counts.append(f"{count} × {bits} bit")
    fused = f", {build['fused_instructions']} fused" if build["fused_instructions"] else ""
    return f"{size}: {' + '.join(counts) or 'none'}{fused}"


def _code(builds: Builds) -> list[Block]:
    built = [build for build in builds.all if "code_bytes" in build]
    if not built:
        return []
    seen = [build for build in built if "widest_bits" in build]
    caption = "Size of a rung's code."
    if seen:
        caption = (
            "Size of a rung's code, and its instructions that add or multiply floats, as they stand there (not how "
            "often they run): one number at a time (scalar) or several in a register of so many bits; fused ones "
            "multiply and add at once."
        )
    table = builds.table(_code_cell, caption, only_built=True)
    heading = Heading("Size and width of the code")
    return [heading, table, Text(_vector_text(seen))] if seen else [heading, table]


def _vector_text(seen: list[Record]) -> str:
    scalar_only = [flags for flags in _in_order(seen, "flags") if _widest(seen, flags) == 32]
    sentences = []
    if scalar_only:
        names = ", ".join(f"`{flags}`" for flags in scalar_only)
        sentences.append(f"With {names} every rung stays scalar: one number per instruction.")
    first = next((flags for flags in _in_order(seen, "flags") if _widest(seen, flags) > 32), None)
    if first is not None:
        sentences.append(f"`{first}` is the first that has vectors of {_widest(seen, first)} bits.")
    base = max((_widest(seen, flags) for flags in _in_order(seen, "flags") if "native" not in flags), default=32)
    native = max((_widest(seen, flags) for flags in _in_order(seen, "flags") if "native" in flags), default=32)
    if native > base:
        sentences.append(
            f"Without `-march=native` the compiler may only use what every x86-64 has, {base} bits; with it the "
            f"vectors grow to {native} bits, and a multiplication and its addition can become one instruction."
        )
    naive = [build for build in seen if build["flags"] == "-O3" and build["rung"] == "naive"]
    if any(build["scalar_instructions"] > build["packed128_instructions"] > 0 for build in naive):
        sentences.append(
            "The naive rung at `-O3` multiplies in vectors but still adds its products one by one: a sum in "
            "another order would be another number, and the compiler may not change the result."
        )
    return " ".join(sentences)


def _widest(seen: list[Record], flags: str) -> int:
    return max(int(build["widest_bits"]) for build in seen if build["flags"] == flags)


def _bits(experiment: Experiment, builds: Builds) -> list[Block]:
    compared = [build for build in builds.all if "changed_elements" in build]
    if len(compared) < len(builds.all):
        return []  # without the reference of one rung its column would be empty

    def cell(build: Record) -> str:
        name = f"{build['rung']}/{build['flags']}"
        error = text.number(experiment.derive(f"roundings/{name}", build["max_error"] / ROUNDING))
        if build["changed_elements"] == 0:
            return f"none ({error})"
        share = experiment.derive(f"changed/{name}", build["changed_elements"] / build["elements"])
        return f"{text.percent(share)} ({error})"

    caption = (
        f"Share of the elements whose bits are not those of the build with `{REFERENCE}`; and the largest error "
        "against a sum in double precision, in roundings of float32, relative to the sum of the terms' magnitudes."
    )
    heading = Heading("Which results change their bits")
    return [heading, builds.table(cell, caption), Text(_bits_text(experiment, builds, compared))]


def _bits_text(experiment: Experiment, builds: Builds, compared: list[Record]) -> str:
    changed = [build for build in compared if build["changed_elements"] > 0]
    if not changed:
        return "No set of flags changed a single bit of any result."
    sentences = []
    keeping = [
        flags for flags in builds.flags if not any(build["flags"] == flags for build in changed) and flags != REFERENCE
    ]
    if keeping:
        names = ", ".join(each if each == INSTALLED else f"`{each}`" for each in keeping)
        sentences.append(f"Results stay the same to the last bit with {names}: the order of the additions is kept.")
    if any(build["flags"] == "-O3 -march=native" for build in changed):
        sentences.append(
            "`-O3 -march=native` changes them without being asked to be inexact: a fused multiply-add rounds once "
            "where two instructions round twice, and the compiler fuses them unless `-ffp-contract=off` forbids it."
        )
    if any(build["flags"].startswith("-Ofast") for build in changed):
        sentences.append("`-Ofast` may add in any order, as if addition were associative.")
    worst = max(changed, key=lambda build: int(build["max_ulps"]))
    sentences.append(
        f"The largest change is {worst['max_ulps']:,} floats away ({worst['rung']}, `{worst['flags']}`), where terms "
        "nearly cancel and little but rounding is left."
    )
    better = [build for build in changed if build["max_error"] < _reference_error(builds, build)]
    if better:
        sentences.append(
            f"Changed is not worse: in {len(better)} of the {len(changed)} builds that changed, the largest error is "
            "smaller than before: several short sums lose less than one long one, and fused instructions round less "
            "often."
        )
        experiment.derive("builds better", len(better))
        experiment.derive("builds changed", len(changed))
    return " ".join(sentences)


def _reference_error(builds: Builds, build: Record) -> float:
    reference = builds.get(build["rung"], REFERENCE)
    return float(reference["max_error"]) if reference is not None else 0.0


def _promises(experiment: Experiment) -> list[Block]:
    probes = experiment.of("promises")
    if not probes:
        return []
    rows = []
    for probe in probes:
        lost = abs(probe["true_sum"] - probe["compensated_sum"]) / ROUNDING
        rows.append(
            [
                f"`{probe['flags']}`",
                text.number(experiment.derive(f"sum error/{probe['flags']}", lost)) + " roundings",
                f"{probe['nans_found']:,} of {probe['numbers']:,}",
                f"{probe['denormals_kept']:,} of {probe['numbers']:,}",
                "yes" if probe["flushes_denormals"] else "no",
            ]
        )
    headings = ["flags", "error of Kahan's sum", "NaNs found by isnan", "denormals kept", "loading it sets FTZ"]
    return [
        Heading("What -Ofast breaks"),
        Text(
            "A second small file relies on three things that IEEE-754 promises: that the carry of a compensated sum "
            "is not optimised away, that a NaN can be found, and that half of the smallest normal number is not zero."
        ),
        Table(headings, rows),
        Text(_promises_text(probes)),
    ]


def _promises_text(probes: list[Record]) -> str:
    blind = [probe["flags"] for probe in probes if probe["nans_found"] < probe["numbers"]]
    flushing = [probe["flags"] for probe in probes if probe["flushes_denormals"]]
    sentences = []
    if blind:
        names = " and ".join(f"`{flags}`" for flags in blind)
        sentences.append(f"With {names} `isnan` finds nothing: the compiler was told that there are no NaNs.")
    if flushing:
        sentences.append(
            "One effect reaches beyond the file. A shared object linked with `-Ofast` carries a constructor "
            "(`crtfastmath`) that sets flush-to-zero and denormals-are-zero in the processor's control register. "
            "A program that loads the object, even by `dlopen` and without calling it, computes without denormals "
            "from then on in that thread and in all threads that it starts. The lab reads the register (MXCSR) before "
            "and after loading, and restores it."
        )
    else:
        sentences.append(
            "Loading the objects left the processor's control register (MXCSR) as it was: this compiler does not "
            "link `crtfastmath` into shared objects. Older GCCs do, and so flush the denormals of programs that "
            "load one."
        )
    return " ".join(sentences)


def _result(experiment: Experiment, builds: Builds) -> str:
    gains = [(builds.gain(experiment, build), build) for build in builds.all if build["flags"] != INSTALLED]
    known = [(gain, build) for gain, build in gains if gain is not None]
    if not known:
        return "No other build could be made here: there are only this program's own times."
    gain, best = max(known, key=lambda each: each[0])
    sentence = (
        f"Flags alone make a rung up to {text.times(gain)} faster ({best['rung']}, `{REFERENCE}` to `{best['flags']}`)"
    )
    naive = [each for each in known if each[1]["rung"] == "naive"]
    most, daring = max(naive, key=lambda each: each[0], default=(gain, best))
    if most < gain:
        sentence += f", but the naive loop only {text.times(most)} (`{daring['flags']}`)"
    peak = experiment.one("peak")
    if peak is not None:
        fastest = max(builds.all, key=lambda build: float(build["gflop_per_s"]))
        share = experiment.derive("best share of peak", fastest["gflop_per_s"] / peak["gflop_per_s"])
        sentence += f". The fastest build reaches {text.percent(share)} of what one core can do"
    return sentence + "."


def _lesson(builds: Builds) -> str:
    """Says by the measurement whether the relaxed flag was worth it."""
    sentences = ["A compiler vectorises what the order of the loops allows, and keeps every bit unless told otherwise."]
    exact = [build["gflop_per_s"] for build in builds.all if build["flags"] == "-O3 -march=native"]
    daring = [build["gflop_per_s"] for build in builds.all if build["flags"] == "-Ofast -march=native"]
    if exact and daring and max(daring) < 1.1 * max(exact):
        sentences.append(
            "The fastest build owes its speed to loops that can be vectorised as they are written: `-Ofast` adds next "
            "to nothing to `-O3 -march=native` there."
        )
    sentences.append("Fast math is for code that was written for it, not for whole programs, and never for libraries.")
    return " ".join(sentences)


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    builds = Builds(experiment)
    title = "How much does the compiler do by itself?"
    if not builds.all:
        return Page(title, "Nothing was built and nothing measured here.")
    compiler = experiment.one("compiler")
    by = "" if compiler is None else f" The compiler is {compiler['version']}."
    n = builds.all[0]["n"]
    blocks: list[Block] = [
        Text(
            "The scalar rungs of the ladder say in their source what to calculate, and leave vectors to the compiler. "
            f"Here each is built again with other flags, and multiplies the same two matrices of {n} × {n}.{by} "
            f"The row “{INSTALLED}” is the rung as it is linked into the command."
        ),
        _speed_picture(experiment, builds),
        _time_table(experiment, builds),
        *_code(builds),
        *_bits(experiment, builds),
        *_promises(experiment),
    ]
    return Page(title, _result(experiment, builds), blocks, _lesson(builds))
