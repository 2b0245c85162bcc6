// The cost of a call with almost nothing to compute.
#include <functional>
#include <utility>
#include <vector>

#include "baregrad/ops.h"
#include "bench/benches.h"
#include "bench/peers.h"
#include "bench/peers_libtorch.h"

namespace baregrad::bench {
namespace {

constexpr std::int64_t kCallsPerSample = 1000;

void measure_calls(Session& session, const char* name, const Dims& shape,
                   std::vector<Candidate> candidates, peers::Libtorch libtorch = nullptr,
                   std::function<void(std::int64_t)> with_libtorch = {}) {
  Row row;
  row.name = name;
  row.dtype = "float32";
  row.shape = to_string(shape);
  row.calls = kCallsPerSample;
  row.candidates = std::move(candidates);
  peers::add_libtorch(row, libtorch, std::move(with_libtorch));
  session.measure(row);
}

}  // namespace

void bench_overhead(Session& session) {
  const peers::Libtorch libtorch = peers::libtorch(session);
  for (const std::int64_t n : session.sizes({4})) {
    const Tensor x = arange(n, DType::Float32);
    const Tensor y = ones({n});
    const Tensor matrix = ones({2, n});
    const std::vector<float> values(static_cast<std::size_t>(n), 1.0f);
    const auto* px = x.data<float>();
    const auto* py = y.data<float>();
    // The lower bound: memory for the result and the loop.
    const auto floor = [n](auto body) {
      return candidate("malloc + loop", [n, body] {
        const peers::Floats out = peers::allocate(n);
        for (std::int64_t i = 0; i < n; ++i) out[i] = body(i);
        keep(out);
      });
    };
    measure_calls(session, "add", {n},
                  {candidate(kOurs, [&] { keep(add(x, y)); }),
                   floor([px, py](std::int64_t i) { return px[i] + py[i]; })},
                  libtorch, [libtorch, n](std::int64_t calls) { libtorch->add(n, calls); });
    measure_calls(session, "add scalar", {n},
                  {candidate(kOurs, [&] { keep(add(x, 2.5)); }),
                   floor([px](std::int64_t i) { return px[i] + 2.5f; })});
    measure_calls(session, "add in place", {n}, {candidate(kOurs, [&] { keep(add_(y, x)); })});
    measure_calls(session, "relu", {n},
                  {candidate(kOurs, [&] { keep(relu(x)); }),
                   floor([px](std::int64_t i) { return px[i] > 0.0f ? px[i] : 0.0f; })});
    measure_calls(session, "sum", {n}, {candidate(kOurs, [&] { keep(sum(x)); })});
    measure_calls(session, "transpose (view)", {2, n},
                  {candidate(kOurs, [&] { keep(matrix_transpose(matrix)); })});
    measure_calls(session, "empty", {n}, {candidate(kOurs, [&] { keep(empty({n})); })});
    measure_calls(session, "from values", {n},
                  {candidate(kOurs, [&] { keep(Tensor::of(values, {n})); })});
    measure_calls(session, "copy of a handle", {n}, {candidate(kOurs, [&] { keep(Tensor(x)); })});
  }
}

}  // namespace baregrad::bench
