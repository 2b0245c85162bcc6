// Reductions of a square matrix, over all elements and along either axis, and softmax.
#include <string>

#include "baregrad/ops.h"
#include "bench/benches.h"
#include "bench/peers.h"

namespace baregrad::bench {
namespace {

using peers::Reduction;

// The plain loops add in float, one lane after the other.
constexpr double kTolerance = 1e-3;

Tensor inputs(const Dims& shape) {
  Generator generator(1);
  return uniform(shape, 0, 1, DType::Float32, &generator);
}

struct Op {
  const char* name;
  Reduction peer;
  Tensor (*run)(const Tensor&, const Axes&);
};

const Op kOps[] = {
    {"sum", Reduction::Sum, [](const Tensor& x, const Axes& axes) { return sum(x, axes); }},
    {"max", Reduction::Max, [](const Tensor& x, const Axes& axes) { return max(x, axes); }},
    {"mean", Reduction::Mean, [](const Tensor& x, const Axes& axes) { return mean(x, axes); }},
    {"var", Reduction::Var, [](const Tensor& x, const Axes& axes) { return var(x, axes); }},
};

struct Direction {
  const char* name;
  Axes axes;
  peers::Floats (*peer)(Reduction, const float*, std::int64_t, std::int64_t, int);
};

const Direction kAll = {"all", {}, peers::reduce_all};
const Direction kAxis0 = {"axis 0", 0, peers::reduce_axis0};
const Direction kAxis1 = {"axis 1", 1, peers::reduce_axis1};

void measure_reduction(Session& session, const Op& op, const Direction& direction,
                       const Tensor& x) {
  const std::int64_t rows = x.ndim() == 2 ? x.shape()[0] : 1;
  const std::int64_t cols = x.shape()[x.ndim() - 1];
  const int threads = session.threads();
  const auto peer = [&] { return direction.peer(op.peer, x.data<float>(), rows, cols, threads); };
  Row row;
  row.name = std::string(op.name) + ", " + direction.name;
  row.dtype = "float32";
  row.shape = to_string(x.shape());
  row.threads = threads;
  row.elements = x.numel();
  row.bytes = 4 * x.numel();
  row.stream = Stream::Read;
  row.candidates = {candidate(kOurs, [&] { keep(op.run(x, direction.axes)); }),
                    candidate("loop", [&] { keep(peer()); })};
  check_same(row.name, op.run(x, direction.axes), peer().get(), kTolerance);
  session.measure(row);
}

void measure_softmax(Session& session, std::int64_t rows, std::int64_t cols) {
  const Tensor x = inputs({rows, cols});
  const int threads = session.threads();
  const auto peer = [&] { return peers::softmax(x.data<float>(), rows, cols, threads); };
  Row row;
  row.name = "softmax";
  row.dtype = "float32";
  row.shape = to_string(x.shape());
  row.threads = threads;
  row.elements = x.numel();
  row.bytes = 8 * x.numel();
  row.stream = Stream::Copy;
  row.candidates = {candidate(kOurs, [&] { keep(softmax(x)); }),
                    candidate("libm loop", [&] { keep(peer()); })};
  check_same(row.name, softmax(x), peer().get(), kTolerance);
  session.measure(row);
}

}  // namespace

void bench_reduce(Session& session) {
  for (const std::int64_t side : session.sizes({4096})) {
    const Tensor x = inputs({side, side});
    for (const Op& op : kOps) {
      for (const Direction* direction : {&kAll, &kAxis0, &kAxis1}) {
        measure_reduction(session, op, *direction, x);
      }
    }
    if (session.options().sizes.empty()) {
      measure_reduction(session, kOps[0], kAll, inputs({1'000'000}));
      measure_softmax(session, 4096, 1024);
    } else {
      measure_softmax(session, side, side);
    }
  }
}

}  // namespace baregrad::bench
