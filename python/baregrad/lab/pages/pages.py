"""The page of `pages`: faults and time per byte of the first and the second write of a block."""

from __future__ import annotations

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

TITLE = "The first touch of memory"
SMALL = "mmap, small pages"
HUGE = "mmap, huge pages"


class Blocks:
    """The records by source, phase and size."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        records = experiment.of("block")
        self.by_key: dict[tuple[str, str, int], Record] = {(r["name"], r["stretch"], r["bytes"]): r for r in records}
        self.sizes = sorted({r["bytes"] for r in records})
        self.fresh = {r["name"]: bool(r["fresh"]) for r in records}
        self.names = sorted(self.fresh, key=lambda name: not self.fresh[name])  # stable: as they were measured

    def has(self, name: str, size: int) -> bool:
        return (name, "first", size) in self.by_key

    def ns(self, name: str, stretch: str, size: int) -> float:
        return float(self.by_key[name, stretch, size]["median_ns"])

    def second(self, name: str, size: int) -> float:
        """Nanoseconds per byte of the second write."""
        return float(self.by_key[name, "second", size]["ns_per_byte"])

    def faults(self, name: str, size: int) -> int:
        """Time from the request for the block to the end of its first write."""
        count = sum(int(self.by_key[name, stretch, size]["faults"]) for stretch in ("get", "first"))
        return int(self.experiment.derive(f"faults/{name}/{size}", count))

    def touch(self, name: str, size: int) -> float:
        """Nanoseconds per byte from the request for the block to the end of its first write."""
        ns = self.ns(name, "get", size) + self.ns(name, "first", size)
        return self.experiment.derive(f"first_touch_ns_per_byte/{name}/{size}", ns / size)

    def per_fault(self, name: str, size: int) -> float:
        """Nanoseconds that a fault adds to the plain write."""
        extra = (self.touch(name, size) - self.second(name, size)) * size
        return self.experiment.derive(f"fault_ns/{name}/{size}", extra / self.faults(name, size))


def _table(blocks: Blocks, size: int) -> Table:
    rows = []
    for name in blocks.names:
        if not blocks.has(name, size):
            continue
        touch, again = blocks.touch(name, size), blocks.second(name, size)
        ratio = blocks.experiment.derive(f"first_to_second/{name}/{size}", touch / again)
        back = float(blocks.by_key[name, "back", size]["ns_per_byte"])
        rows.append(
            [
                name,
                f"{blocks.faults(name, size):,}",
                text.number(touch),
                text.number(again),
                text.times(ratio),
                text.number(back),
            ]
        )
    headings = ["source", "faults", "get and first write", "second write", "ratio", "give back"]
    caption = (
        f"Blocks of {text.size(size)}; times in ns per byte. The pages of `malloc, again`, `pool, again` and the arena "
        "had been touched before, where they were kept."
    )
    return Table(headings, rows, caption)


def _times_picture(blocks: Blocks) -> Picture:
    figure, panels = style.new_figure(1, 2, height=4.2)
    for axes, fresh, title in ((panels[0], True, "fresh memory"), (panels[1], False, "touched before")):
        chosen = [name for name in blocks.names if blocks.fresh[name] == fresh]
        for index, name in enumerate(chosen):
            sizes = [size for size in blocks.sizes if blocks.has(name, size)]
            values = [blocks.touch(name, size) for size in sizes]
            axes.plot([size / 2**20 for size in sizes], values, label=name, **style.line(index))
        floor = [blocks.second(chosen[0], size) for size in blocks.sizes] if chosen else []
        axes.plot([size / 2**20 for size in blocks.sizes], floor, color="black", linewidth=1, linestyle=(0, (6, 2)),
                  label=f"second write ({chosen[0]})")
        axes.set(xscale="log", yscale="log", xlabel="size of the block, MiB", title=title)
        ticks = [size / 2**20 for size in blocks.sizes]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    panels[0].set_ylabel("get and first write, ns per byte")
    low = min(axes.get_ylim()[0] for axes in panels)
    high = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(low, high)
    return Picture("pages_time", "Time per byte from asking for a block to having written all of it once; "
                   "the dashed line is the same write when the pages are there.", figure)


def _faults_picture(blocks: Blocks, size: int) -> Picture:
    names = [name for name in blocks.names if blocks.has(name, size)]
    figure, axes = style.new_figure(height=0.36 * len(names) + 0.9)
    counts = [blocks.faults(name, size) for name in names]
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        axes.barh(place, max(count, 0.7), **style.bar(0 if blocks.fresh[name] else 1))
        axes.annotate(f" {count:,}", (max(count, 0.7), place), va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel=f"page faults of a block of {text.size(size)}", xlim=(0.5, 4 * max(*counts, 2)))
    axes.grid(axis="y", visible=False)
    return Picture("pages_faults", "Faults from asking for a block to having written all of it once, on a "
                   "logarithmic axis; hatched bars had been touched before.", figure)


def _fault_cost(blocks: Blocks, size: int, page: int) -> str:
    """The cost of one fault, if there were any."""
    parts = []
    if blocks.has(SMALL, size) and blocks.faults(SMALL, size) > 0:
        parts.append(
            f"With small pages there is a fault for every {text.size(page)}: {blocks.faults(SMALL, size):,} of them in "
            f"{text.size(size)}. A first write takes {text.time(blocks.per_fault(SMALL, size))} per fault longer "
            "than a second one. In that time the program stops, the kernel looks up who owns the address, finds a "
            "free page, fills it with zeros and enters it in the page table; only then the store is done again."
        )
    if blocks.has(HUGE, size) and 0 < blocks.faults(HUGE, size) < blocks.faults(SMALL, size):
        each = blocks.experiment.derive(f"bytes_per_fault/{HUGE}/{size}", size / blocks.faults(HUGE, size))
        gain = blocks.experiment.derive(
            f"small_to_huge/{size}", blocks.touch(SMALL, size) / blocks.touch(HUGE, size)
        )
        faster = (
            f"the first write is {text.times(gain)} as fast"
            if gain > 1.1
            else f"the first write was not faster in this run ({text.times(gain)} the speed of small pages)"
        )
        parts.append(
            f"With huge pages one fault brings {text.size(each)}. It takes {text.time(blocks.per_fault(HUGE, size))}, "
            f"since all of that is filled with zeros, but there are only {blocks.faults(HUGE, size):,}, and {faster}."
        )
    return " ".join(parts)


def _setting(pages: Record | None) -> str:
    setting = pages["huge_pages"] if pages else ""
    if setting == "madvise":
        return (
            "Transparent huge pages are set to `madvise` here: only who asks for them with `madvise` gets them. The "
            "pool and the arena ask for blocks of 2 MiB and more; `malloc` does not."
        )
    if setting == "always":
        return (
            "Transparent huge pages are set to `always` here: every large block may get them, `malloc` and "
            "`std::vector` included. The row with small pages forbids them."
        )
    return "Transparent huge pages are off here, so that the rows that ask for them show small pages."


def _malloc_again(blocks: Blocks) -> str:
    name = "malloc, again"
    sizes = [size for size in blocks.sizes if blocks.has(name, size)]
    kept = [size for size in sizes if blocks.faults(name, size) * 64 < blocks.faults(SMALL, size)]
    lost = [size for size in sizes if size not in kept]
    if not sizes:
        return ""
    if not lost:
        return (
            f"`malloc` keeps what `free` gave back: a second block of up to {text.size(kept[-1])} does not fault. "
            "It is a pool too, for blocks that are not too large."
        )
    if not kept:
        return "`malloc` returned every block to the system at once: the second block faults like the first."
    return (
        f"`malloc` keeps what `free` gave back up to a size: a second block of {text.size(kept[-1])} does not fault. "
        f"One of {text.size(lost[0])} went back to the system at once, and the next one faults "
        f"{blocks.faults(name, lost[0]):,} times again. A loop that allocates such blocks pays in every round."
    )


def _ours(blocks: Blocks, size: int) -> str:
    if not (blocks.has("pool, again", size) and blocks.has("arena", size)):
        return ""
    prepare = blocks.by_key["arena", "prepare", size]
    return (
        f"The pool keeps blocks of every size: used again, {text.size(size)} fault "
        f"{blocks.faults('pool, again', size):,} times and are written at "
        f"{text.number(blocks.touch('pool, again', size))} ns per byte. The arena pays before: its reservation takes "
        f"{text.time(prepare['median_ns'])} ({text.number(prepare['ns_per_byte'])} ns per byte) and touches every "
        f"page; what is allocated from it later faults {blocks.faults('arena', size):,} times. The cost is not gone, "
        "but it is paid once, before the work."
    )


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    blocks = Blocks(experiment)
    if not blocks.sizes:
        return Page(TITLE, "Nothing was measured.")
    size = blocks.sizes[-1]
    pages = experiment.one("pages")
    page = int(pages["page_bytes"]) if pages else 4096
    malloc, again = blocks.touch("malloc", size), blocks.second("malloc", size)
    ratio = experiment.derive(f"first_to_second/malloc/{size}", malloc / again)
    result = (
        f"The first write of {text.size(size)} from `malloc` takes {text.number(malloc)} ns per byte and "
        f"{blocks.faults('malloc', size):,} page faults, the second {text.number(again)} ns per byte and "
        f"{blocks.by_key['malloc', 'second', size]['faults']:,}: "
        f"{text.times(ratio)}. Memory of the arena faults {blocks.faults('arena', size):,} times."
    )
    story: list[Block] = [
        Text(
            "Memory that a program asks for does not exist yet. The system only notes that the addresses are taken. "
            "The first store to each page stops in the middle: the processor finds no entry in the page table and "
            "calls the kernel. That is a page fault."
        ),
        Text(
            "Each source below was asked for a block. All of it was written, then written again, then given back. "
            "`get` belongs to the first write, because a `std::vector` writes zeros into its memory when it is made "
            "and has its faults there; a program that then fills it writes everything twice."
        ),
        Heading("What was seen"),
        _table(blocks, size),
        _times_picture(blocks),
        _faults_picture(blocks, size),
        Heading("What explains it"),
        Text(_fault_cost(blocks, size, page)),
        Text(_setting(pages)),
        Text(_malloc_again(blocks)),
        Text(_ours(blocks, size)),
    ]
    return Page(
        TITLE,
        result,
        [block for block in story if not (isinstance(block, Text) and not block.text)],
        "Memory is cheap when it is used again and dear when it is new. What runs in a loop should take its memory "
        "once, before the loop. Where new memory cannot be avoided, large pages make it cheaper.",
    )
