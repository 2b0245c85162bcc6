// The steps of the optimizers as in their papers, in double, rounded once at the end.
#include "backends/cpu/irregular/step.h"

#include <cmath>

#include "backends/cpu/reference/reference.h"

namespace baregrad::kernels::reference {

namespace {

double lerp(double a, double b, double rate) { return a + rate * (b - a); }

/// One element of each operand.
void update(StepRule rule, double* x, const StepNumbers& s) {
  double& p = x[0];
  const auto gradient = [&] {
    const double g = s.sign * x[1];
    return s.weight_decay == 0 ? g : g + s.weight_decay * p;
  };
  switch (rule) {
    case StepRule::Sgd:
      p -= s.lr * gradient();
      return;
    case StepRule::SgdMomentum: {
      const double g = gradient();
      x[2] = s.first ? g : s.beta1 * x[2] + s.rate1 * g;
      p -= s.lr * (s.nesterov ? g + s.beta1 * x[2] : x[2]);
      return;
    }
    case StepRule::Adam: {
      p *= s.shrink;
      const double g = gradient();
      x[2] = lerp(x[2], g, s.rate1);
      x[3] = s.beta2 * x[3] + s.rate2 * g * g;
      p -= s.lr * x[2] / (std::sqrt(x[3]) * s.scale2 + s.eps);
      return;
    }
    case StepRule::RmsProp:
    case StepRule::RmsPropCentered:
    case StepRule::RmsPropMomentum:
    case StepRule::RmsPropCenteredMomentum: {
      const bool centered =
          rule == StepRule::RmsPropCentered || rule == StepRule::RmsPropCenteredMomentum;
      const bool momentum =
          rule == StepRule::RmsPropMomentum || rule == StepRule::RmsPropCenteredMomentum;
      const double g = gradient();
      x[2] = s.beta2 * x[2] + s.rate2 * g * g;
      double spread = x[2];
      if (centered) {
        x[3] = lerp(x[3], g, s.rate2);
        spread -= x[3] * x[3];
        if (spread < 0) spread = 0;
      }
      const double move = g / (std::sqrt(spread) + s.eps);
      if (momentum) {
        double& buffer = x[centered ? 4 : 3];
        buffer = s.momentum * buffer + move;
        p -= s.lr * buffer;
      } else {
        p -= s.lr * move;
      }
      return;
    }
    case StepRule::Adagrad: {
      const double g = gradient();
      x[2] += g * g;
      p -= s.lr * g / (std::sqrt(x[2]) + s.eps);
      return;
    }
    case StepRule::Lion: {
      p *= s.shrink;
      const double g = gradient();
      const double u = s.beta1 * x[2] + s.rate1 * g;
      x[2] = s.beta2 * x[2] + s.rate2 * g;
      p -= s.lr * (u > 0 ? 1 : u < 0 ? -1 : u);
      return;
    }
    case StepRule::Lerp:
      p = lerp(p, x[1], s.rate1);
      return;
    case StepRule::Scale:
      p *= s.lr;
      return;
    case StepRule::Clamp:
      if (p < -s.lr) p = -s.lr;
      if (p > s.lr) p = s.lr;
      return;
  }
}

constexpr int operand_count(StepRule rule) {
  switch (rule) {
    case StepRule::Scale:
    case StepRule::Clamp:
      return 1;
    case StepRule::Sgd:
    case StepRule::Lerp:
      return 2;
    case StepRule::SgdMomentum:
    case StepRule::RmsProp:
    case StepRule::Adagrad:
    case StepRule::Lion:
      return 3;
    case StepRule::Adam:
    case StepRule::RmsPropCentered:
    case StepRule::RmsPropMomentum:
      return 4;
    case StepRule::RmsPropCenteredMomentum:
      break;
  }
  return 5;
}

template <class T, StepRule kRule>
void step(void* const* operands, std::int64_t n, const StepNumbers& numbers) {
  constexpr int kOperands = operand_count(kRule);
  for (std::int64_t i = 0; i < n; ++i) {
    double x[kMaxStepOperands];
    for (int k = 0; k < kOperands; ++k) {
      x[k] = static_cast<double>(static_cast<const T*>(operands[k])[i]);
    }
    update(kRule, x, numbers);
    for (int k = 0; k < kOperands; ++k) {
      if (k != 1) static_cast<T*>(operands[k])[i] = static_cast<T>(x[k]);
    }
  }
}

template <class T>
double square_sum(const void* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(static_cast<const T*>(x)[i]);
    sum += value * value;
  }
  return sum;
}

template <int kRule = 0>
constexpr void fill_rules(StepKernels& kernels) {
  if constexpr (kRule < kNumStepRules) {
    kernels.step[kRule][0] = step<float, static_cast<StepRule>(kRule)>;
    kernels.step[kRule][1] = step<double, static_cast<StepRule>(kRule)>;
    fill_rules<kRule + 1>(kernels);
  }
}

constexpr StepKernels kReferenceSteps = [] {
  StepKernels kernels;
  fill_rules(kernels);
  kernels.square_sum[0] = square_sum<float>;
  kernels.square_sum[1] = square_sum<double>;
  return kernels;
}();

}  // namespace

void register_steps(KernelTable& table) { table.step = &kReferenceSteps; }

}  // namespace baregrad::kernels::reference
