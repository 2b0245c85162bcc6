// One step of the optimizers, over one large tensor and over many small ones.
#include <memory>
#include <string>

#include "baregrad/ops.h"
#include "baregrad/optim.h"
#include "bench/benches.h"

namespace baregrad::bench {
namespace {

using optim::Tensors;

struct StepCase {
  const char* name;
  std::unique_ptr<optim::Optimizer> (*make)(const Tensors& params);
  // Of 4 bytes per parameter: the gradient is read; the parameter and states are read and written.
  int streams;
};

const StepCase kCases[] = {
    {"AdamW",
     [](const Tensors& p) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::AdamW>(p);
     },
     7},
    {"Adam",
     [](const Tensors& p) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::Adam>(p);
     },
     7},
    {"SGD momentum",
     [](const Tensors& p) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 1e-3, .momentum = 0.9});
     },
     5},
    {"Lion",
     [](const Tensors& p) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::Lion>(p);
     },
     5},
};

/// `count` tensors of `numel` elements in all, with gradients.
Tensors parameters(std::int64_t numel, std::int64_t count) {
  Generator generator(1);
  Tensors params;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = numel * (i + 1) / count - numel * i / count;
    params.push_back(uniform({n}, -1, 1, DType::Float32, &generator));
    params.back().set_grad(uniform({n}, -1, 1, DType::Float32, &generator));
  }
  return params;
}

Row row_of(const Session& session, const std::string& name, std::int64_t numel,
           std::int64_t tensors) {
  Row row;
  row.name = name;
  row.dtype = "float32";
  row.shape = std::to_string(tensors) + " x " + std::to_string(numel / tensors);
  row.threads = session.threads();
  row.elements = numel;
  return row;
}

}  // namespace

void bench_optim(Session& session) {
  for (const std::int64_t numel : session.sizes({10'000'000})) {
    for (const std::int64_t tensors : {std::int64_t{1}, std::int64_t{1000}}) {
      if (tensors > numel) continue;
      const Tensors params = parameters(numel, tensors);
      for (const StepCase& c : kCases) {
        const auto optimizer = c.make(params);
        Row row = row_of(session, c.name, numel, tensors);
        row.bytes = 4 * c.streams * numel;
        row.stream = Stream::Update;
        row.candidates = {candidate(kOurs, [&] { optimizer->step(); })};
        optimizer->step();  // the first step allocates the state
        session.measure(row);
      }
      Row row = row_of(session, "clip_grad_norm_", numel, tensors);
      row.bytes = 4 * numel;
      row.stream = Stream::Read;
      row.candidates = {candidate(kOurs, [&] { keep(optim::clip_grad_norm_(params, 1e9)); })};
      session.measure(row);
    }
  }
}

}  // namespace baregrad::bench
