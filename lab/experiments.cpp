// The list of experiments.
#include "lab/experiments.h"

#include <string>

#include "baregrad/error.h"

namespace baregrad::lab {
namespace {

constexpr Experiment kExperiments[] = {
    {"ceilings", "What can this machine do at best?",
     "Loops that do nothing but multiply-adds, loops that do nothing but read, copy, add or update "
     "memory of each cache's size, on the pages that tensors of so many bytes have, chains of "
     "loads that wait for each other, and empty parallel regions. The best of several rounds is "
     "the ceiling.",
     run_ceilings},
    {"ladder",
     "Where do the factors between a naive product of matrices and the engine's come from?",
     "The same product of float32 matrices with one idea more per rung. Rungs take turns at every "
     "size, into memory that is there already; each result is compared with a sum in double "
     "precision. Instructions, loads, branches and misses of each rung are counted at one size. "
     "Then threads, three ways; then the libraries at equal thread counts.",
     run_ladder},
    {"flags", "How much of the ladder does the compiler climb by itself?",
     "The ladder's scalar rungs are built again by the compiler found here, with seven sets of "
     "flags. Builds of a rung take turns on the same matrices, on one thread, output memory not "
     "counted. Sizes come from the symbol table, widths from the disassembly, changes from "
     "comparing bits with the build at -O0, errors from a sum in double precision.",
     run_flags},
    {"cache", "What does a cache miss cost, and how much of a line is wasted?",
     "A matrix of each cache's size is summed and filled by rows, by columns and in tiles, and "
     "transposed with and without tiles; then numbers are summed with growing gaps between them. "
     "On one thread, memory allocated and touched before. Misses of the same loops come from the "
     "hardware's counters, or from a simulation of the caches where there are none.",
     run_cache},
    {"branches", "What do branches cost, and when does unrolling stop to help?",
     "Integers of at least zero are added up, in an order that can be foreseen and in one that "
     "cannot, with a branch and without; a dot product is unrolled 1 to 32 times with one sum and "
     "with several; instructions that do nothing are run in blocks from 1 KiB to beyond the L2 "
     "cache. On one thread. Branches and instructions of the same loops are counted by the "
     "hardware, or by a simulation where it gives no counters.",
     run_branches},
    {"wall", "How close to the machine's peak does anybody get?",
     "Products of many sizes and shapes in turns with OpenBLAS, BLIS, oneDNN, MKL, NumPy and "
     "PyTorch, at equal thread counts, output allocation included on all sides; a BLAS is asked "
     "for its product of vector and matrix where there is one row. Drawn against multiply-adds "
     "measured in the same run.",
     run_wall},
    {"scaling", "What does another thread bring?",
     "The same work on one thread up to all of them in turns, bound by arithmetic and bound by "
     "memory; results are allocated in the time measured. Amdahl's serial fraction is fitted to "
     "the "
     "medians, with an interval from drawing the samples anew.",
     run_scaling},
    {"roofline", "Which of the two roofs, arithmetic or memory, is each kernel under?",
     "Kernels of the engine and rungs of the ladder on one thread as points over measured roofs; "
     "operations and bytes are counted by the profiler, those of the rungs from their size. What "
     "moves numbers and computes none is compared with the roof of memory alone.",
     run_roofline},
    {"pages", "What does the first touch of memory cost?",
     "A block from each source is got, written by memset, written again and given back, all "
     "sources "
     "in turns; the kernel counts the faults. Medians of each stretch.",
     run_pages},
    {"training", "What does the memory of a training step cost, and when does it matter?",
     "The same networks, from the same weights and on the same batch, trained from C++ with memory "
     "from the "
     "system, the pool and the arena, from Python, and by PyTorch, in turns on the same threads: "
     "forward, "
     "backward and AdamW, all allocation included. Every step is a sample; faults and allocations "
     "are counted in steps of their own. Then hidden layers and batches from small to large.",
     run_training},
    {"jitter", "Why are two runs of the same work not equally long?",
     "A product, an elementwise op and a training step are run again and again on one thread, in "
     "blocks by turns free to move and pinned to a CPU, output memory included. What the kernel "
     "counts of the thread is read before and after every run. Then ops take turns on ordinary and "
     "on denormal numbers, with and without flushing.",
     run_jitter},
    {"energy", "What does a step cost in joules, and is it cheaper to hurry?",
     "The processor's own counters of energy are read before and after many runs of the same work. "
     "Thread counts take turns in three rounds; the median round is told, beside the power of an "
     "idle second.",
     run_energy},
};

}  // namespace

std::span<const Experiment> experiments() { return kExperiments; }

const Experiment& find_experiment(std::string_view name) {
  std::string names;
  for (const Experiment& experiment : kExperiments) {
    if (experiment.name == name) return experiment;
    names += names.empty() ? "" : ", ";
    names += experiment.name;
  }
  throw ValueError("lab: there is no experiment '" + std::string(name) + "': there are " + names);
}

}  // namespace baregrad::lab
