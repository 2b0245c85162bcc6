// Softmax, normalisation, cross-entropy and attention: forward, and forward with backward.
#include <string>

#include "baregrad/autograd.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "bench/benches.h"

namespace baregrad::bench {
namespace {

Tensor values(const Dims& shape, std::uint64_t seed) {
  Generator generator(seed);
  return normal(shape, 0, 1, DType::Float32, &generator);
}
Tensor leaf(const Tensor& t) { return t.detach().requires_grad_(); }

struct Case {
  std::string name;
  Tensor x;
  int passes;        ///< over memory of x's size, the minimum for any implementation
  Stream stream;     ///< the ceiling loop with the same reads and writes
  double flops = 0;  ///< of products
};

template <class Once>
void measure(Session& session, const Case& c, Once once) {
  Row row;
  row.name = c.name;
  row.dtype = "float32";
  row.shape = to_string(c.x.shape());
  row.threads = session.threads();
  row.elements = c.x.numel();
  if (c.flops == 0) row.bytes = 4 * c.x.numel() * c.passes;
  row.stream = c.stream;
  row.flops = c.flops;
  row.candidates = {candidate(kOurs, once)};
  session.measure(row);
}

void measure_rows(Session& session, std::int64_t rows) {
  const Tensor x = values({rows, 1024}, 1);
  measure(session, {"softmax", x, 2, Stream::Copy}, [&] { keep(softmax(x)); });
  measure(session, {"log_softmax", x, 2, Stream::Copy}, [&] { keep(log_softmax(x)); });

  const Tensor h = values({rows, 768}, 2);
  const Tensor g = values({rows, 768}, 3);
  const Tensor weight = values({768}, 4);
  const Tensor bias = values({768}, 5);
  measure(session, {"layer_norm", h, 2, Stream::Copy},
          [&] { keep(layer_norm(h, {768}, weight, bias)); });
  measure(session, {"rms_norm", h, 2, Stream::Copy}, [&] { keep(rms_norm(h, {768}, weight)); });
  // Forward reads x and writes y; backward reads both x and g and writes dx.
  const autograd::Tensors leaves{leaf(h), leaf(weight), leaf(bias)};
  measure(session, {"layer_norm + backward", h, 5, Stream::Add}, [&] {
    const Tensor y = layer_norm(leaves[0], {768}, leaves[1], leaves[2]);
    keep(autograd::grad({y}, leaves, {g}));
  });
  const autograd::Tensors two{leaves[0], leaves[1]};
  measure(session, {"rms_norm + backward", h, 5, Stream::Add}, [&] {
    const Tensor y = rms_norm(two[0], {768}, two[1]);
    keep(autograd::grad({y}, two, {g}));
  });

  Generator generator(6);
  const Tensor target = randint(0, 1024, {rows}, DType::Int64, &generator);
  const Tensor logits = leaf(x);
  measure(session, {"cross_entropy", x, 1, Stream::Read}, [&] { keep(cross_entropy(x, target)); });
  measure(session, {"cross_entropy + backward", x, 3, Stream::Add},
          [&] { keep(autograd::grad({cross_entropy(logits, target)}, {logits})); });
}

void measure_attention(Session& session, std::int64_t length) {
  constexpr std::int64_t kHeads = 16;
  constexpr std::int64_t kDepth = 64;
  const auto draw = [&](std::uint64_t seed) { return values({kHeads, length, kDepth}, seed); };
  const Tensor q = draw(7);
  const Tensor k = draw(8);
  const Tensor v = draw(9);
  const Tensor g = draw(10);
  const double product =
      2.0 * kHeads * kDepth * static_cast<double>(length) * static_cast<double>(length);
  measure(session, {"attention", q, 0, Stream::Copy, 2 * product},
          [&] { keep(scaled_dot_product_attention(q, k, v)); });
  measure(session, {"attention, causal", q, 0, Stream::Copy, product},
          [&] { keep(scaled_dot_product_attention(q, k, v, {.causal = true})); });
  const autograd::Tensors leaves{leaf(q), leaf(k), leaf(v)};
  measure(session, {"attention + backward", q, 0, Stream::Copy, 7 * product}, [&] {
    const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2]);
    keep(autograd::grad({y}, leaves, {g}));
  });
}

}  // namespace

void bench_norm(Session& session) {
  for (const std::int64_t rows : session.sizes({4096})) measure_rows(session, rows);
  if (session.options().sizes.empty())
    measure_attention(session, session.options().quick ? 256 : 1024);
}

}  // namespace baregrad::bench
