// Convolutions of 3 x 3: forward and both gradients; pooling. The peer is the machine: percent of
// its multiply-add ceiling.
#include <functional>
#include <string>

#include "baregrad/autograd.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "bench/benches.h"

namespace baregrad::bench {
namespace {

struct Layer {
  std::int64_t channels;
  std::int64_t pixels;  ///< per side
};
constexpr Layer kLayers[] = {{16, 56}, {32, 56}, {64, 56}, {64, 28}, {128, 28}, {128, 14}};
const ConvOptions kSame{{1, 1}, {1, 1}};

Tensor inputs(std::uint64_t seed, const Dims& shape) {
  Generator generator(seed);
  return uniform(shape, -1, 1, DType::Float32, &generator);
}

void measure_conv(Session& session, const Layer& layer, std::int64_t batch) {
  const Dims shape = {batch, layer.channels, layer.pixels, layer.pixels};
  const Tensor x = inputs(1, shape);
  const Tensor w = inputs(2, {layer.channels, layer.channels, 3, 3});
  const Tensor g = inputs(3, shape);
  const Dims image = {layer.pixels, layer.pixels};
  const struct {
    const char* name;
    std::function<Tensor()> run;
  } directions[] = {
      {"conv2d 3x3", [&] { return conv2d(x, w, Tensor(), kSame); }},
      {"conv2d 3x3, gradient of the images", [&] { return conv2d_input(g, w, image, kSame); }},
      {"conv2d 3x3, gradient of the filters",
       [&] {
         return conv2d_weight(x, g, {3, 3}, kSame);
       }},
  };
  for (const auto& direction : directions) {
    Row row;
    row.name = direction.name;
    row.dtype = "float32";
    row.shape = to_string(shape);
    row.threads = session.threads();
    row.flops = 2.0 * 9 * static_cast<double>(layer.channels) * static_cast<double>(x.numel());
    row.candidates = {candidate(kOurs, [&direction] { keep(direction.run()); })};
    session.measure(row);
  }
}

void measure_pool(Session& session, std::int64_t batch) {
  const Tensor x = inputs(1, {batch, 64, 56, 56});
  const PoolOptions halves{.kernel = {2, 2}};
  const Tensor leaf = x.detach().requires_grad_();
  const Tensor g = ones({batch, 64, 28, 28});
  const struct {
    const char* name;
    std::function<void()> run;
  } kinds[] = {
      {"max_pool2d 2x2", [&] { keep(max_pool2d(x, halves)); }},
      {"max_pool2d 2x2, and back",
       [&] { keep(autograd::grad({max_pool2d(leaf, halves)}, {leaf}, {g})); }},
      {"avg_pool2d 2x2", [&] { keep(avg_pool2d(x, halves)); }},
      {"avg_pool2d 2x2, and back",
       [&] { keep(autograd::grad({avg_pool2d(leaf, halves)}, {leaf}, {g})); }},
  };
  for (const auto& kind : kinds) {
    Row row;
    row.name = kind.name;
    row.dtype = "float32";
    row.shape = to_string(x.shape());
    row.threads = session.threads();
    row.elements = x.numel();
    row.candidates = {candidate(kOurs, [&kind] { kind.run(); })};
    session.measure(row);
  }
}

}  // namespace

void bench_conv(Session& session) {
  for (const std::int64_t batch : session.sizes({1, 32})) {
    for (const Layer& layer : kLayers) measure_conv(session, layer, batch);
    measure_pool(session, batch);
  }
}

}  // namespace baregrad::bench
