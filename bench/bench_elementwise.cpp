// Elementwise ops on large tensors: contiguous, into new memory, broadcast, transposed, strided;
// and functions with much arithmetic per element.
#include <cmath>
#include <string>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bench/benches.h"
#include "bench/peers.h"

namespace baregrad::bench {
namespace {

// Beyond this size malloc returns every block to the system: outputs are never in a cache.
constexpr std::int64_t kFreshElements = 8'000'000;
constexpr double kExact = 0;
// libmvec is up to 4 ULP off, and the plain forms of sigmoid and gelu lose some bits of their own.
constexpr double kMathTolerance = 2e-6;

Tensor inputs(const Dims& shape, double low, double high) {
  Generator generator(1);
  return uniform(shape, low, high, DType::Float32, &generator);
}

Row row_of(const Session& session, std::string name, const Dims& shape) {
  Row row;
  row.name = std::move(name);
  row.dtype = "float32";
  row.shape = to_string(shape);
  row.threads = session.threads();
  row.elements = 1;
  for (const std::int64_t size : shape) row.elements *= size;
  return row;
}

/// Every output is new memory from the system, for ours and for the peer.
void make_fresh(Row& row) {
  row.name += ", fresh memory";
  row.prepare = [] { current_allocator().trim(); };
}

void measure_binary(Session& session, const char* name, std::int64_t n,
                    Tensor (*op)(const Operand&, const Operand&), peers::BinaryFn peer) {
  const Tensor x = inputs({n}, -4, 4);
  const Tensor y = inputs({n}, -2, 2);
  const auto* px = x.data<float>();
  const auto* py = y.data<float>();
  const int threads = session.threads();
  Row row = row_of(session, name, {n});
  row.bytes = 12 * n;
  row.stream = Stream::Add;
  row.candidates = {candidate(kOurs, [&] { keep(op(x, y)); }),
                    candidate("loop", [&] { keep(peer(px, py, n, threads)); })};
  check_same(name, op(x, y), peer(px, py, n, threads).get(), kExact);
  if (n >= kFreshElements) make_fresh(row);
  session.measure(row);
}

/// `others`: peers by name.
void measure_unary(Session& session, const char* name, const Tensor& x, Tensor (*op)(const Tensor&),
                   const std::vector<std::pair<const char*, peers::UnaryFn>>& others,
                   double tolerance) {
  const std::int64_t n = x.numel();
  const auto* px = x.data<float>();
  const int threads = session.threads();
  Row row = row_of(session, name, {n});
  row.bytes = 8 * n;
  row.stream = Stream::Copy;
  row.candidates = {candidate(kOurs, [&] { keep(op(x)); })};
  for (const auto& [peer_name, peer] : others) {
    row.candidates.push_back(
        candidate(peer_name, [px, n, threads, run = peer] { keep(run(px, n, threads)); }));
    check_same(name, op(x), peer(px, n, threads).get(), tolerance);
  }
  if (n >= kFreshElements) make_fresh(row);
  session.measure(row);
}

void measure_broadcast(Session& session, std::int64_t side) {
  const Tensor x = inputs({side, 1}, -4, 4);
  const Tensor y = inputs({1, side}, -2, 2);
  const int threads = session.threads();
  const auto peer = [&] {
    return peers::add_outer(x.data<float>(), y.data<float>(), side, side, threads);
  };
  Row row = row_of(session, "add [N,1] + [1,N]", {side, side});
  row.bytes = 4 * side * side + 8 * side;
  row.stream = Stream::Copy;
  row.candidates = {candidate(kOurs, [&] { keep(add(x, y)); }),
                    candidate("loop", [&] { keep(peer()); })};
  check_same(row.name, add(x, y), peer().get(), kExact);
  session.measure(row);
}

void measure_transposed(Session& session, std::int64_t side) {
  const Tensor x = inputs({side, side}, -4, 4);
  const Tensor y = inputs({side, side}, -2, 2);
  const Tensor xt = matrix_transpose(x);
  const int threads = session.threads();
  const auto peer = [&] {
    return peers::add_transposed(x.data<float>(), y.data<float>(), side, threads);
  };
  Row row = row_of(session, "add x.T + y", {side, side});
  row.bytes = 12 * side * side;
  row.stream = Stream::Add;
  row.candidates = {candidate(kOurs, [&] { keep(add(xt, y)); }),
                    candidate("loop", [&] { keep(peer()); })};
  check_same(row.name, add(xt, y), peer().get(), kExact);
  session.measure(row);
}

void measure_strided(Session& session, std::int64_t side) {
  const Tensor whole = inputs({side, 2 * side}, -4, 4);
  const Tensor x = slice(whole, 1, Slice{.step = 2});
  const Tensor y = inputs({side, side}, -2, 2);
  const int threads = session.threads();
  const auto peer = [&] {
    return peers::add_every_other(whole.data<float>(), y.data<float>(), side * side, threads);
  };
  Row row = row_of(session, "add x[:, ::2] + y", {side, side});
  row.bytes = 16 * side * side;  // reads whole cache lines of x
  row.stream = Stream::Add;
  row.candidates = {candidate(kOurs, [&] { keep(add(x, y)); }),
                    candidate("loop", [&] { keep(peer()); })};
  check_same(row.name, add(x, y), peer().get(), kExact);
  session.measure(row);
}

void measure_functions(Session& session, std::int64_t n) {
  const peers::Libmvec* vector = peers::libmvec();
  struct Function {
    const char* name;
    Tensor (*op)(const Tensor&);
    peers::UnaryFn libm;
    peers::UnaryFn peers::Libmvec::*libmvec;
  };
  const Function functions[] = {
      {"exp", exp, peers::exp, &peers::Libmvec::exp},
      {"log", log, peers::log, &peers::Libmvec::log},
      {"tanh", tanh, peers::tanh, &peers::Libmvec::tanh},
      {"sigmoid", sigmoid, peers::sigmoid, &peers::Libmvec::sigmoid},
      {"gelu", gelu, peers::gelu, &peers::Libmvec::gelu},
      {"erf", erf, peers::erf, &peers::Libmvec::erf},
  };
  const Tensor anywhere = inputs({n}, -4, 4);
  const Tensor positive = inputs({n}, 1e-3, 1e3);
  for (const Function& f : functions) {
    std::vector<std::pair<const char*, peers::UnaryFn>> others = {{"libm loop", f.libm}};
    if (vector != nullptr) others.emplace_back("libmvec loop", vector->*f.libmvec);
    measure_unary(session, f.name,
                  f.op == static_cast<Tensor (*)(const Tensor&)>(log) ? positive : anywhere, f.op,
                  others, kMathTolerance);
  }
}

}  // namespace

void bench_elementwise(Session& session) {
  const bool quick = session.options().quick;
  const std::int64_t fresh = quick ? 2 * kFreshElements : 100'000'000;
  for (const std::int64_t n : session.sizes({1'000'000, fresh})) {
    measure_binary(session, "add", n, add, peers::add);
    measure_binary(session, "multiply", n, multiply, peers::multiply);
    measure_unary(session, "relu", inputs({n}, -4, 4), relu, {{"loop", peers::relu}}, kExact);
    if (n >= kFreshElements) continue;
    measure_functions(session, n);
    const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(n))));
    measure_broadcast(session, side);
    measure_transposed(session, side);
    measure_strided(session, side);
  }
  if (session.options().sizes.empty() && !quick) {
    measure_broadcast(session, 4096);
    measure_transposed(session, 4096);
    measure_strided(session, 4096);
  }
}

}  // namespace baregrad::bench
