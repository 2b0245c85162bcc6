// The first and the second write to new memory.
#include <algorithm>

#include <unistd.h>

#include "lab/experiments.h"
#include "lab/pages/block_sources.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Named {
  const char* name;
  Stretch BlockLife::*stretch;
};
constexpr Named kStretches[] = {{"prepare", &BlockLife::prepare},
                                {"get", &BlockLife::get},
                                {"first", &BlockLife::first},
                                {"second", &BlockLife::second},
                                {"back", &BlockLife::back}};

std::int64_t median_faults(const std::vector<BlockLife>& lives, Stretch BlockLife::*stretch) {
  std::vector<std::int64_t> counts;
  for (const BlockLife& life : lives) counts.push_back((life.*stretch).faults);
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  return *middle;
}

void add_stretches(Notebook& notebook, const BlockSource& source, std::size_t bytes,
                   const std::vector<BlockLife>& lives) {
  for (const Named& each : kStretches) {
    if (each.stretch == &BlockLife::prepare && lives.front().prepare.ns == 0) continue;
    std::vector<double> ns;
    for (const BlockLife& life : lives) ns.push_back((life.*each.stretch).ns);
    const Timing timing = summarize(std::move(ns));
    Json record = {{"name", source.name},
                   {"fresh", source.fresh},
                   {"stretch", each.name},
                   {"bytes", bytes},
                   {"faults", median_faults(lives, each.stretch)},
                   {"ns_per_byte", timing.median_ns / static_cast<double>(bytes)}};
    record.update(to_json(timing));
    notebook.add("block", record);
  }
}

void measure_blocks(Notebook& notebook, std::size_t bytes) {
  std::vector<BlockSource> sources = block_sources();
  if (missing_huge_pages(bytes).empty()) sources.push_back(huge_page_source());
  std::vector<std::vector<BlockLife>> lives(sources.size());
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    // Twice in a turn, and the second counts: each source then finds the free pages of the system
    // as it left them itself, not fragmented by others.
    contenders.push_back({sources[i].name, [&source = sources[i], &all = lives[i], bytes] {
                            source.live(bytes);
                            all.push_back(source.live(bytes));
                            return all.back().get.ns + all.back().first.ns;
                          }});
  }
  Turns turns;
  turns.seconds = notebook.quick() ? 0.5 : 1.5;
  turns.most = 50;
  take_turns(contenders, turns);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    add_stretches(notebook, sources[i], bytes, lives[i]);
  }
}

void describe_pages(Notebook& notebook, std::size_t largest) {
  const std::string setting = huge_page_setting();
  notebook.add("pages", {{"page_bytes", sysconf(_SC_PAGESIZE)}, {"huge_pages", setting}});
  if (setting.empty() || setting == "never") {
    notebook.absent("transparent huge pages", setting.empty()
                                                  ? "the kernel knows none"
                                                  : "they are switched off on this system");
  }
  const std::string missing = missing_huge_pages(largest);
  if (!missing.empty()) {
    notebook.absent("a block of explicit huge pages (MAP_HUGETLB) of every size", missing);
  }
}

}  // namespace

void run_pages(Notebook& notebook) {
  const std::size_t last = notebook.quick() ? 32 : 256;
  notebook.part("settings", [&] { describe_pages(notebook, last * kMiB); });
  const std::size_t factor = notebook.quick() ? 32 : 4;
  for (std::size_t count = 1; count <= last; count *= factor) {
    notebook.part(std::to_string(count) + " MiB", [&] {
      // At most one block is alive, and malloc keeps one more of the same size.
      if (4 * count * kMiB > notebook.machine().memory_bytes) {
        notebook.absent("blocks of " + std::to_string(count) + " MiB", "too little memory here");
        return;
      }
      measure_blocks(notebook, count * kMiB);
    });
  }
}

}  // namespace baregrad::lab
