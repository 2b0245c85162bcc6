// The optimizers: their settings, what they keep, and the numbers of a step.
#include <cmath>
#include <limits>

#include "optim/rule.h"

namespace baregrad::optim {

using kernels::StepNumbers;
using kernels::StepRule;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Settings stand in the order of the options' members: these are their places.

namespace sgd {
enum : std::size_t { kLr, kMomentum, kDampening, kWeightDecay, kNesterov, kMaximize };
StepNumbers prepare(const double* s, double) {
  StepNumbers n;
  n.lr = s[kLr];
  n.sign = s[kMaximize] != 0 ? -1 : 1;
  n.weight_decay = s[kWeightDecay];
  n.beta1 = s[kMomentum];
  n.rate1 = 1 - s[kDampening];
  n.nesterov = s[kNesterov] != 0;
  return n;
}
const char* problem(const double* s) {
  return s[kNesterov] != 0 && (s[kMomentum] <= 0 || s[kDampening] != 0)
             ? "nesterov needs a momentum and no dampening"
             : nullptr;
}
OptimizerRule::Choice choose(const double* s) {
  return s[kMomentum] != 0 ? OptimizerRule::Choice{StepRule::SgdMomentum, 1}
                           : OptimizerRule::Choice{StepRule::Sgd, 0};
}
}  // namespace sgd

namespace adam {
enum : std::size_t { kLr, kBeta1, kBeta2, kEps, kWeightDecay, kMaximize };
template <bool kDecoupled>
StepNumbers prepare(const double* s, double t) {
  StepNumbers n;
  n.lr = s[kLr] / (1 - std::pow(s[kBeta1], t));
  n.sign = s[kMaximize] != 0 ? -1 : 1;
  if constexpr (kDecoupled) {
    n.shrink = 1 - s[kLr] * s[kWeightDecay];
  } else {
    n.weight_decay = s[kWeightDecay];
  }
  n.beta1 = s[kBeta1];
  n.rate1 = 1 - s[kBeta1];
  n.beta2 = s[kBeta2];
  n.rate2 = 1 - s[kBeta2];
  n.scale2 = 1 / std::sqrt(1 - std::pow(s[kBeta2], t));
  n.eps = s[kEps];
  return n;
}
}  // namespace adam

namespace rmsprop {
enum : std::size_t { kLr, kAlpha, kEps, kWeightDecay, kMomentum, kCentered, kMaximize };
OptimizerRule::Choice choose(const double* s) {
  const bool momentum = s[kMomentum] > 0;
  if (s[kCentered] != 0) {
    return momentum ? OptimizerRule::Choice{StepRule::RmsPropCenteredMomentum, 0b111}
                    : OptimizerRule::Choice{StepRule::RmsPropCentered, 0b011};
  }
  return momentum ? OptimizerRule::Choice{StepRule::RmsPropMomentum, 0b101}
                  : OptimizerRule::Choice{StepRule::RmsProp, 0b001};
}
StepNumbers prepare(const double* s, double) {
  StepNumbers n;
  n.lr = s[kLr];
  n.sign = s[kMaximize] != 0 ? -1 : 1;
  n.weight_decay = s[kWeightDecay];
  n.beta2 = s[kAlpha];
  n.rate2 = 1 - s[kAlpha];
  n.eps = s[kEps];
  n.momentum = s[kMomentum];
  return n;
}
}  // namespace rmsprop

namespace adagrad {
enum : std::size_t { kLr, kLrDecay, kWeightDecay, kInitial, kEps, kMaximize };
StepNumbers prepare(const double* s, double t) {
  StepNumbers n;
  n.lr = s[kLr] / (1 + (t - 1) * s[kLrDecay]);
  n.sign = s[kMaximize] != 0 ? -1 : 1;
  n.weight_decay = s[kWeightDecay];
  n.eps = s[kEps];
  return n;
}
}  // namespace adagrad

namespace lion {
enum : std::size_t { kLr, kBeta1, kBeta2, kWeightDecay, kMaximize };
StepNumbers prepare(const double* s, double) {
  StepNumbers n;
  n.lr = s[kLr];
  n.sign = s[kMaximize] != 0 ? -1 : 1;
  n.shrink = 1 - s[kLr] * s[kWeightDecay];
  n.beta1 = s[kBeta1];
  n.rate1 = 1 - s[kBeta1];
  n.beta2 = s[kBeta2];
  n.rate2 = 1 - s[kBeta2];
  return n;
}
}  // namespace lion

/// One kernel, always with the same states.
template <StepRule kKernel, unsigned kStates>
OptimizerRule::Choice always(const double*) {
  return {kKernel, kStates};
}

using Setting = OptimizerRule::Setting;

constexpr Setting kSgdSettings[] = {
    {"lr", 0, kInf},           {"momentum", 0, kInf}, {"dampening", -kInf, kInf},
    {"weight_decay", 0, kInf}, {"nesterov", 0, 1},    {"maximize", 0, 1}};
constexpr const char* kSgdStates[] = {"momentum_buffer"};
constexpr OptimizerRule kSgd{"SGD",        kSgdSettings, kSgdStates,  sgd::choose,
                             sgd::prepare, nullptr,      sgd::problem};

constexpr Setting kAdamSettings[] = {{"lr", 0, kInf},           {"beta1", 0, 1, true},
                                     {"beta2", 0, 1, true},     {"eps", 0, kInf},
                                     {"weight_decay", 0, kInf}, {"maximize", 0, 1}};
constexpr const char* kAdamStates[] = {"exp_avg", "exp_avg_sq"};
constexpr OptimizerRule kAdam{"Adam", kAdamSettings, kAdamStates, always<StepRule::Adam, 0b11>,
                              adam::prepare<false>};
constexpr OptimizerRule kAdamW{"AdamW", kAdamSettings, kAdamStates, always<StepRule::Adam, 0b11>,
                               adam::prepare<true>};

constexpr Setting kRmsPropSettings[] = {
    {"lr", 0, kInf},       {"alpha", 0, kInf}, {"eps", 0, kInf},  {"weight_decay", 0, kInf},
    {"momentum", 0, kInf}, {"centered", 0, 1}, {"maximize", 0, 1}};
constexpr const char* kRmsPropStates[] = {"square_avg", "grad_avg", "momentum_buffer"};
constexpr OptimizerRule kRmsProp{"RMSprop", kRmsPropSettings, kRmsPropStates, rmsprop::choose,
                                 rmsprop::prepare};

constexpr Setting kAdagradSettings[] = {
    {"lr", 0, kInf},           {"lr_decay", 0, kInf},
    {"weight_decay", 0, kInf}, {"initial_accumulator_value", 0, kInf},
    {"eps", 0, kInf},          {"maximize", 0, 1}};
constexpr const char* kAdagradStates[] = {"sum"};
constexpr OptimizerRule kAdagrad{
    "Adagrad",        kAdagradSettings,
    kAdagradStates,   always<StepRule::Adagrad, 1>,
    adagrad::prepare, [](const double* s) { return s[adagrad::kInitial]; }};

constexpr Setting kLionSettings[] = {{"lr", 0, kInf},
                                     {"beta1", 0, 1, true},
                                     {"beta2", 0, 1, true},
                                     {"weight_decay", 0, kInf},
                                     {"maximize", 0, 1}};
constexpr const char* kLionStates[] = {"exp_avg"};
constexpr OptimizerRule kLion{"Lion", kLionSettings, kLionStates, always<StepRule::Lion, 1>,
                              lion::prepare};

constexpr double flag(bool on) { return on ? 1 : 0; }

}  // namespace

SGD::SGD(Tensors params, const SGDOptions& options) : Optimizer(kSgd) {
  add_group(std::move(params), options);
}
void SGD::add_group(Tensors params, const SGDOptions& o) {
  add(std::move(params),
      {o.lr, o.momentum, o.dampening, o.weight_decay, flag(o.nesterov), flag(o.maximize)});
}

Adam::Adam(Tensors params, const AdamOptions& options) : Optimizer(kAdam) {
  add_group(std::move(params), options);
}
void Adam::add_group(Tensors params, const AdamOptions& o) {
  add(std::move(params), {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, flag(o.maximize)});
}

AdamW::AdamW(Tensors params, const AdamWOptions& options) : Optimizer(kAdamW) {
  add_group(std::move(params), options);
}
void AdamW::add_group(Tensors params, const AdamWOptions& o) {
  add(std::move(params), {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, flag(o.maximize)});
}

RMSprop::RMSprop(Tensors params, const RMSpropOptions& options) : Optimizer(kRmsProp) {
  add_group(std::move(params), options);
}
void RMSprop::add_group(Tensors params, const RMSpropOptions& o) {
  add(std::move(params),
      {o.lr, o.alpha, o.eps, o.weight_decay, o.momentum, flag(o.centered), flag(o.maximize)});
}

Adagrad::Adagrad(Tensors params, const AdagradOptions& options) : Optimizer(kAdagrad) {
  add_group(std::move(params), options);
}
void Adagrad::add_group(Tensors params, const AdagradOptions& o) {
  add(std::move(params),
      {o.lr, o.lr_decay, o.weight_decay, o.initial_accumulator_value, o.eps, flag(o.maximize)});
}

Lion::Lion(Tensors params, const LionOptions& options) : Optimizer(kLion) {
  add_group(std::move(params), options);
}
void Lion::add_group(Tensors params, const LionOptions& o) {
  add(std::move(params), {o.lr, o.beta1, o.beta2, o.weight_decay, flag(o.maximize)});
}

}  // namespace baregrad::optim
