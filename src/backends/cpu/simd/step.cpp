// The steps of the optimizers for one ISA: each a struct that holds its numbers as vectors and
// updates one vector of every operand.
// The order of operations is PyTorch's, and none is fused: with plain additions, products,
// quotients and roots, every instruction set gives the same bits.
#include "backends/cpu/irregular/step.h"

#include "backends/cpu/simd/families.h"
#include "backends/cpu/simd/vec.h"

namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

/// The gradient with its sign, and the weight decay added to it.
template <class T>
struct Gradient {
  using V = Vec<T>;
  explicit Gradient(const StepNumbers& s)
      : sign(V::constant(s.sign)),
        decay(V::constant(s.weight_decay)),
        decays(s.weight_decay != 0) {}
  BG_INLINE V operator()(V parameter, V gradient) const {
    const V g = gradient * sign;
    // Without the test, 0 times an infinite parameter would be NaN.
    return decays ? g + parameter * decay : g;
  }
  V sign;
  V decay;
  bool decays;
};

/// Interpolates from a to b, computed from the nearer end.
template <class T>
struct Mean {
  using V = Vec<T>;
  explicit Mean(double rate_in)
      : rate(V::constant(rate_in)), rest(V::constant(1 - rate_in)), near_end(rate_in >= 0.5) {}
  BG_INLINE V operator()(V a, V b) const {
    const V way = b - a;
    return near_end ? b - way * rest : a + way * rate;
  }
  V rate;
  V rest;
  bool near_end;
};

template <class T, bool kMomentum>
struct Sgd {
  using V = Vec<T>;
  static constexpr int kOperands = kMomentum ? 3 : 2;
  explicit Sgd(const StepNumbers& s)
      : gradient(s),
        lr(V::constant(-s.lr)),
        beta(V::constant(s.beta1)),
        rate(V::constant(s.rate1)),
        nesterov(s.nesterov),
        first(s.first) {}
  BG_INLINE void operator()(V* x) const {
    V g = gradient(x[0], x[1]);
    if constexpr (kMomentum) {
      x[2] = first ? g : x[2] * beta + g * rate;
      g = nesterov ? g + x[2] * beta : x[2];
    }
    x[0] = x[0] + g * lr;
  }
  Gradient<T> gradient;
  V lr;
  V beta;
  V rate;
  bool nesterov;
  bool first;
};

template <class T>
struct Adam {
  using V = Vec<T>;
  static constexpr int kOperands = 4;
  explicit Adam(const StepNumbers& s)
      : gradient(s),
        mean(s.rate1),
        lr(V::constant(-s.lr)),
        shrink(V::constant(s.shrink)),
        beta2(V::constant(s.beta2)),
        rate2(V::constant(s.rate2)),
        scale2(V::constant(s.scale2)),
        eps(V::constant(s.eps)) {}
  BG_INLINE void operator()(V* x) const {
    const V p = x[0] * shrink;
    const V g = gradient(p, x[1]);
    x[2] = mean(x[2], g);
    x[3] = x[3] * beta2 + g * rate2 * g;
    x[0] = p + x[2] * lr / (V::sqrt(x[3]) * scale2 + eps);
  }
  Gradient<T> gradient;
  Mean<T> mean;
  V lr;
  V shrink;
  V beta2;
  V rate2;
  V scale2;
  V eps;
};

template <class T, bool kCentered, bool kMomentum>
struct RmsProp {
  using V = Vec<T>;
  static constexpr int kOperands = 3 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
  explicit RmsProp(const StepNumbers& s)
      : gradient(s),
        mean(s.rate2),
        lr(V::constant(-s.lr)),
        alpha(V::constant(s.beta2)),
        rate(V::constant(s.rate2)),
        momentum(V::constant(s.momentum)),
        eps(V::constant(s.eps)) {}
  BG_INLINE void operator()(V* x) const {
    const V g = gradient(x[0], x[1]);
    x[2] = x[2] * alpha + g * rate * g;
    V spread = x[2];
    if constexpr (kCentered) {
      x[3] = mean(x[3], g);
      // Rounding may give slightly less than zero.
      const V zero = V::constant(0);
      spread = spread - x[3] * x[3];
      spread = V::select(spread < zero, zero, spread);
    }
    const V root = V::sqrt(spread) + eps;
    if constexpr (kMomentum) {
      V& buffer = x[kOperands - 1];
      buffer = buffer * momentum + g / root;
      x[0] = x[0] + buffer * lr;
    } else {
      x[0] = x[0] + g * lr / root;
    }
  }
  Gradient<T> gradient;
  Mean<T> mean;
  V lr;
  V alpha;
  V rate;
  V momentum;
  V eps;
};

template <class T>
struct Adagrad {
  using V = Vec<T>;
  static constexpr int kOperands = 3;
  explicit Adagrad(const StepNumbers& s)
      : gradient(s), lr(V::constant(-s.lr)), eps(V::constant(s.eps)) {}
  BG_INLINE void operator()(V* x) const {
    const V g = gradient(x[0], x[1]);
    x[2] = x[2] + g * g;
    x[0] = x[0] + g * lr / (V::sqrt(x[2]) + eps);
  }
  Gradient<T> gradient;
  V lr;
  V eps;
};

template <class T>
struct Lion {
  using V = Vec<T>;
  static constexpr int kOperands = 3;
  explicit Lion(const StepNumbers& s)
      : gradient(s),
        lr(V::constant(-s.lr)),
        shrink(V::constant(s.shrink)),
        beta1(V::constant(s.beta1)),
        rate1(V::constant(s.rate1)),
        beta2(V::constant(s.beta2)),
        rate2(V::constant(s.rate2)) {}
  BG_INLINE void operator()(V* x) const {
    const V p = x[0] * shrink;
    const V g = gradient(p, x[1]);
    const V u = x[2] * beta1 + g * rate1;
    const V zero = V::constant(0);
    // The sign of u; zeros and NaN are kept.
    const V unit = V::copysign(V::constant(1), u);
    const V sign = V::select((u < zero) | (u > zero), unit, u);
    x[2] = x[2] * beta2 + g * rate2;
    x[0] = p + sign * lr;
  }
  Gradient<T> gradient;
  V lr;
  V shrink;
  V beta1;
  V rate1;
  V beta2;
  V rate2;
};

template <class T>
struct Lerp {
  using V = Vec<T>;
  static constexpr int kOperands = 2;
  explicit Lerp(const StepNumbers& s) : mean(s.rate1) {}
  BG_INLINE void operator()(V* x) const { x[0] = mean(x[0], x[1]); }
  Mean<T> mean;
};

template <class T>
struct Scale {
  using V = Vec<T>;
  static constexpr int kOperands = 1;
  explicit Scale(const StepNumbers& s) : factor(V::constant(s.lr)) {}
  BG_INLINE void operator()(V* x) const { x[0] = x[0] * factor; }
  V factor;
};

template <class T>
struct Clamp {
  using V = Vec<T>;
  static constexpr int kOperands = 1;
  explicit Clamp(const StepNumbers& s) : low(V::constant(-s.lr)), high(V::constant(s.lr)) {}
  BG_INLINE void operator()(V* x) const {
    const V lifted = V::select(x[0] < low, low, x[0]);
    x[0] = V::select(lifted > high, high, lifted);
  }
  V low;
  V high;
};

template <class T, class Rule>
void run(void* const* operands, std::int64_t n, const StepNumbers& numbers) {
  using V = Vec<T>;
  constexpr int kOperands = Rule::kOperands;
  constexpr auto kLanes = static_cast<std::int64_t>(V::kLanes);
  const Rule rule(numbers);
  T* data[kOperands];
  for (int k = 0; k < kOperands; ++k) data[k] = static_cast<T*>(operands[k]);
  V x[kOperands];
  std::int64_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    for (int k = 0; k < kOperands; ++k) x[k] = V::load(data[k] + i);
    rule(x);
    for (int k = 0; k < kOperands; ++k) {
      if (k != 1) x[k].store(data[k] + i);
    }
  }
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  for (int k = 0; k < kOperands; ++k) x[k] = V::load_part(data[k] + i, rest);
  rule(x);
  for (int k = 0; k < kOperands; ++k) {
    if (k != 1) x[k].store_part(data[k] + i, rest);
  }
}

/// Element i is added to sum i % kSums, whatever the vector width.
constexpr std::int64_t kSums = 32;

template <class T>
double square_sum(const void* x_in, std::int64_t n) {
  const auto* x = static_cast<const T*>(x_in);
  const hn::ScalableTag<double> d;
  constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(double));
  constexpr int kVectors = static_cast<int>(kSums / kLanes);
  hn::Vec<decltype(d)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; n - i >= kSums; i += kSums) {
    for (int k = 0; k < kVectors; ++k) {
      hn::Vec<decltype(d)> value;
      if constexpr (sizeof(T) == 4) {
        const hn::Rebind<float, decltype(d)> half;
        value = hn::PromoteTo(d, hn::LoadU(half, x + i + k * kLanes));
      } else {
        value = hn::LoadU(d, x + i + k * kLanes);
      }
      sums[k] = hn::Add(sums[k], hn::Mul(value, value));
    }
  }
  HWY_ALIGN double lanes[kSums];
  for (int k = 0; k < kVectors; ++k) hn::Store(sums[k], d, lanes + k * kLanes);
  for (std::int64_t k = 0; i < n; ++i, ++k) {
    const auto value = static_cast<double>(x[i]);
    lanes[k] += value * value;
  }
  for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
    for (std::int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

template <class T>
constexpr void fill(StepKernels& kernels, int type) {
  const auto put = [&](StepRule rule, StepFn fn) {
    kernels.step[static_cast<int>(rule)][type] = fn;
  };
  put(StepRule::Sgd, run<T, Sgd<T, false>>);
  put(StepRule::SgdMomentum, run<T, Sgd<T, true>>);
  put(StepRule::Adam, run<T, Adam<T>>);
  put(StepRule::RmsProp, run<T, RmsProp<T, false, false>>);
  put(StepRule::RmsPropCentered, run<T, RmsProp<T, true, false>>);
  put(StepRule::RmsPropMomentum, run<T, RmsProp<T, false, true>>);
  put(StepRule::RmsPropCenteredMomentum, run<T, RmsProp<T, true, true>>);
  put(StepRule::Adagrad, run<T, Adagrad<T>>);
  put(StepRule::Lion, run<T, Lion<T>>);
  put(StepRule::Lerp, run<T, Lerp<T>>);
  put(StepRule::Scale, run<T, Scale<T>>);
  put(StepRule::Clamp, run<T, Clamp<T>>);
  kernels.square_sum[type] = square_sum<T>;
}

constexpr StepKernels kernels_here() {
  StepKernels kernels;
  fill<float>(kernels, 0);
  fill<double>(kernels, 1);
  return kernels;
}

constexpr StepKernels kKernels = kernels_here();

}  // namespace

void register_steps(KernelTable& table) { table.step = &kKernels; }

}  // namespace baregrad::kernels::HWY_NAMESPACE
