// The list of benchmarks.
#include "bench/benches.h"

#include <array>
#include <string>

#include "baregrad/error.h"

namespace baregrad::bench {
namespace {

constexpr std::string_view kMatmulOptions[] = {"--dtype", "--shapes", "--peers", "--check"};

constexpr std::array kBenches = {
    Bench{"elementwise", "add, multiply, relu, broadcast and strided operands, exp to erf",
          "elements", bench_elementwise},
    Bench{"reduce", "sum, max, mean, var over all, axis 0, axis 1; softmax",
          "side of the square matrix", bench_reduce},
    Bench{"overhead", "what one call on a tiny tensor costs", "elements", bench_overhead},
    Bench{"alloc", "allocate and free, by allocator", "bytes of a block", bench_alloc},
    Bench{"parallel", "entering and leaving a parallel region; short work after pauses",
          "thread counts", bench_parallel},
    Bench{"matmul", "products of matrices against OpenBLAS, BLIS, oneDNN and MKL",
          "side of the square matrices", bench_matmul, kMatmulOptions},
    Bench{"autograd", "graphs of numbers, long chains, training steps, memory", "nodes of a chain",
          bench_autograd},
    Bench{"train", "training steps and an epoch from files; what a step asks of the system",
          "images in a batch", bench_train},
    Bench{"conv", "convolutions of 3 x 3 forward and backward, pooling", "images of a batch",
          bench_conv},
    Bench{"optim", "a step of AdamW, Adam, SGD and Lion; clipping", "parameters", bench_optim},
    Bench{"norm", "softmax, layer and RMS norm, cross-entropy, attention, with their gradients",
          "rows", bench_norm},
};

}  // namespace

std::span<const Bench> benches() { return kBenches; }

const Bench& find_bench(std::string_view name) {
  std::string names;
  for (const Bench& bench : kBenches) {
    if (bench.name == name) return bench;
    names += (names.empty() ? "" : ", ") + std::string(bench.name);
  }
  throw ValueError("bench: there is no '" + std::string(name) + "'; there are " + names);
}

}  // namespace baregrad::bench
