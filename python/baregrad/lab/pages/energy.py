"""Joules per product and per step, on processors with energy counters."""

from __future__ import annotations

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record


def _joules(value: float) -> str:
    for limit, scale, unit in ((1e-3, 1e-6, "µJ"), (1.0, 1e-3, "mJ")):
        if abs(value) < limit:
            return f"{text.number(value / scale)} {unit}"
    return f"{text.number(value)} J"


def _picture(energies: list[Record]) -> Picture:
    names = list(dict.fromkeys(record["name"] for record in energies))
    counts = sorted({record["threads"] for record in energies})
    figure, all_axes = style.new_figure(1, len(names), height=3.2)
    for axes, name in zip(all_axes if len(names) > 1 else [all_axes], names, strict=True):
        for index, count in enumerate(counts):
            found = [record for record in energies if record["name"] == name and record["threads"] == count]
            for record in found:
                middle = record["joules_per_call"] * 1e3
                low = middle - record["least_joules_per_call"] * 1e3
                high = record["most_joules_per_call"] * 1e3 - middle
                axes.bar(index, middle, 0.7, yerr=[[low], [high]], capsize=3, **style.bar(index))
        axes.set_xticks(range(len(counts)), [str(count) for count in counts])
        axes.set_xlabel("threads")
        axes.set_title(name, fontsize=10)
        axes.grid(axis="x", visible=False)
    (all_axes[0] if len(names) > 1 else all_axes).set_ylabel("energy of one call [mJ]")
    return Picture("energy", "Energy of the whole processor during one call. Lines span the rounds.", figure)


def _table(energies: list[Record]) -> Table:
    rows = [
        [
            f"{record['name']} ({record['work']})",
            str(record["threads"]),
            text.time(record["seconds_per_call"] * 1e9),
            _joules(record["joules_per_call"]),
            f"{_joules(record['least_joules_per_call'])} to {_joules(record['most_joules_per_call'])}",
            f"{text.number(record['watts'])} W",
        ]
        for record in energies
    ]
    return Table(["work", "threads", "time of a call", "energy of a call", "rounds", "power"], rows)


def _race(experiment: Experiment, races: list[Record]) -> list[Block]:
    if not races:
        return []
    rows, hurried = [], []
    for race in races:
        saved = experiment.derive(f"saved/{race['name']}", 1 - race["fast_joules"] / race["slow_joules"])
        if saved > 0:
            hurried.append(race["name"])
        rows.append(
            [
                race["name"],
                f"{_joules(race['slow_joules'])} on {race['slow_threads']}",
                f"{_joules(race['fast_joules'])} on {race['fast_threads']}",
                f"{text.percent(saved)} less" if saved >= 0 else f"{text.percent(-saved)} more",
            ]
        )
    if len(hurried) == len(races):
        answer = "It is cheaper to hurry: all threads need less additional energy than the shorter time saves."
    elif hurried:
        answer = f"Hurrying is cheaper for {', '.join(hurried)}, and more expensive for the rest."
    else:
        answer = "It is more expensive to hurry here: idling costs about as much as one busy core."
    return [
        Heading("Race to sleep"),
        Text(
            "The same work on all threads is done earlier, at a higher power; for the rest of the time the processor "
            "idles. Both ways are compared over the time that one thread takes."
        ),
        Table(["work", "slow [threads]", "fast, then idle [threads]", "fast"], rows),
        Text(answer),
    ]


def _without(experiment: Experiment) -> Page:
    why = "; ".join(record["why"] for record in experiment.absent) or "nothing was recorded"
    return Page(
        "What does a step cost in joules?",
        f"That cannot be measured here, because {why}. There is no number on this page.",
        [
            Text(
                "Intel's processors since Sandy Bridge and AMD's since Zen count the energy that they use (RAPL, "
                "running average power limit), and Linux shows the counters in `/sys/class/powercap`. Where they can "
                "be read, this experiment reads them before and after products and training steps, on one thread up to "
                "all of them, and during an idle second. It then reports joules per call, watts, and whether it is "
                "cheaper to hurry and sleep (“race to sleep”) or to work slowly on one core."
            ),
            Text(
                "There are two usual obstacles. Virtual machines have no such counters, because they belong to "
                "a processor that several guests share. And on many systems only root may read them, since they were "
                "used to extract secrets from other programs. An estimate from the watts in a data sheet would be a "
                "guess that looks like a measurement, so none is given."
            ),
        ],
        "Without counters, a program cannot measure its energy: then the honest answer is no number.",
    )


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    energies = experiment.of("energy")
    if not energies:
        return _without(experiment)
    idle = experiment.one("idle")
    idle_text = "" if idle is None else f" An idle second of the same minute took {text.number(idle['watts'])} W."
    least = min(energies, key=lambda record: float(record["joules_per_call"]))
    zones = experiment.one("counters")
    names = "" if zones is None else f" ({', '.join(zones['zones'])})"
    steps = [record for record in energies if record["name"] == "step"]
    subject = min(steps or [least], key=lambda record: float(record["joules_per_call"]))
    result = (
        f"A {subject['name']} ({subject['work']}) takes {_joules(subject['joules_per_call'])} on {subject['threads']} "
        f"thread{'' if subject['threads'] == 1 else 's'}, at {text.number(subject['watts'])} W.{idle_text}"
    )
    blocks: list[Block] = [
        Text(
            f"The counters{names} belong to the whole processor: other programs, caches and idle cores are in every "
            "number. What is told is what the machine used while it did the work, not what the work alone would need."
        ),
        _picture(energies),
        _table(energies),
        *_race(experiment, experiment.of("race")),
    ]
    lesson = (
        "Energy is power times time, and a processor that waits still draws power. Faster code saves energy in almost "
        "the same measure as it saves time; more threads do so only as far as they shorten the work."
    )
    return Page("What does a step cost in joules?", result, blocks, lesson)
