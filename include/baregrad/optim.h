// Optimizers, schedules of their learning rates, clipping of gradients, moving averages of weights.
// Names, defaults and formulas are PyTorch's.
//
//   optim::AdamW optimizer(model.parameters(), {.lr = 3e-4, .weight_decay = 0.1});
//   optim::CosineAnnealingLR schedule(optimizer, steps);
//   for (...) {
//     loss.backward();
//     optim::clip_grad_norm_(model.parameters(), 1.0);
//     optimizer.step();
//     schedule.step();
//     optimizer.zero_grad();
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/state.h"
#include "baregrad/tensor.h"

namespace baregrad::optim {

using Tensors = std::vector<Tensor>;

// ---- Optimizers --------------------------------------------------------------------------------

/// What tells one optimizer from another; private.
struct OptimizerRule;

/// Parameters that are updated with the same numbers. A switch is 0 or 1.
class BAREGRAD_API Group {
 public:
  const Tensors& params() const noexcept { return params_; }
  /// "lr", "weight_decay", ...: the names of the optimizer's options. Throws ValueError for a name
  /// that it does not have, and lists those it has. Values set here are the caller's to choose
  /// well: only options given to an optimizer are checked.
  double& operator[](std::string_view name);
  double operator[](std::string_view name) const;
  bool has(std::string_view name) const noexcept;
  double lr() const { return (*this)["lr"]; }
  void set_lr(double lr) { (*this)["lr"] = lr; }

 private:
  friend class Optimizer;
  struct Setting {
    const char* name;
    double value;
  };
  Tensors params_;
  const char* optimizer_ = nullptr;
  std::vector<Setting> settings_;
};

/// What all optimizers share. A step is one pass over the memory of all parameters together, with
/// the same bits at any number of threads and on every instruction set; after the first it
/// allocates nothing. It is not recorded, and counts as a write into each parameter.
///
/// What an optimizer keeps per parameter has the parameter's dtype, and float32 beside float16 and
/// bfloat16, whose steps are computed in float32 and rounded once. Where a parameter's dtype has
/// changed (Module::to), the next step converts what is kept for it and goes on.
class BAREGRAD_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// "AdamW"
  const char* name() const noexcept;
  std::vector<Group>& groups() noexcept;
  const std::vector<Group>& groups() const noexcept;

  /// Updates every parameter that has a gradient; the others are left alone, and so is what is kept
  /// for them. Throws OutOfMemory before anything is written.
  void step();
  /// Drops the gradients, or with `set_to_none` false fills them with zeros where they lie.
  void zero_grad(bool set_to_none = true);

  /// Tensors "3.exp_avg" by the number of the parameter (through all groups); values "3.step",
  /// "group.0.lr". The tensors are the optimizer's own: the next step writes into them.
  [[nodiscard]] State state() const;
  /// Goes on from there, bit for bit where dtypes are equal; floating tensors of another dtype are
  /// converted. Throws one ValueError that lists everything that does not fit the parameters, and
  /// has changed nothing then. The tensors are copied.
  void load_state(const State& state);

 protected:
  explicit Optimizer(const OptimizerRule& rule);
  /// Throws ValueError, DTypeError or GradError for parameters that cannot be optimized: none at
  /// all, not floating, not leaves, given before, or with elements that share memory. `values` are
  /// in the order of the rule's settings.
  void add(Tensors params, const std::vector<double>& values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The values that an option may have: from `least` to `most`, without `most` itself where `below`.
struct OptionRange {
  double least;
  double most;
  bool below = false;
};
inline constexpr OptionRange kAnyNumber{-std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::infinity()};
inline constexpr OptionRange kNotNegative{0, std::numeric_limits<double>::infinity()};
inline constexpr OptionRange kBelowOne{0, 1, true};
inline constexpr OptionRange kSwitch{0, 1};

// The options of an optimizer are described once, by a struct: its name, the members with their
// defaults, and `fields`, which calls field(name, member, range) for each of them in the order of
// the members. Checks, groups, saved states and the arguments in Python follow from it.

struct SGDOptions {
  static constexpr const char* kName = "SGD";
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    field("lr", o.lr, kNotNegative);
    field("momentum", o.momentum, kNotNegative);
    field("dampening", o.dampening, kAnyNumber);
    field("weight_decay", o.weight_decay, kNotNegative);
    field("nesterov", o.nesterov, kSwitch);
    field("maximize", o.maximize, kSwitch);
  }
};

struct AdamOptions {
  static constexpr const char* kName = "Adam";
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  ///< times the parameter, added to the gradient
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    field("lr", o.lr, kNotNegative);
    field("beta1", o.beta1, kBelowOne);
    field("beta2", o.beta2, kBelowOne);
    field("eps", o.eps, kNotNegative);
    field("weight_decay", o.weight_decay, kNotNegative);
    field("maximize", o.maximize, kSwitch);
  }
};

struct AdamWOptions {
  static constexpr const char* kName = "AdamW";
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< apart from the gradient: parameters shrink by lr * weight_decay
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    AdamOptions::fields(o, field);
  }
};

struct RMSpropOptions {
  static constexpr const char* kName = "RMSprop";
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< by the variance; never negative here, PyTorch's may be by rounding
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    field("lr", o.lr, kNotNegative);
    field("alpha", o.alpha, kNotNegative);
    field("eps", o.eps, kNotNegative);
    field("weight_decay", o.weight_decay, kNotNegative);
    field("momentum", o.momentum, kNotNegative);
    field("centered", o.centered, kSwitch);
    field("maximize", o.maximize, kSwitch);
  }
};

struct AdagradOptions {
  static constexpr const char* kName = "Adagrad";
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    field("lr", o.lr, kNotNegative);
    field("lr_decay", o.lr_decay, kNotNegative);
    field("weight_decay", o.weight_decay, kNotNegative);
    field("initial_accumulator_value", o.initial_accumulator_value, kNotNegative);
    field("eps", o.eps, kNotNegative);
    field("maximize", o.maximize, kSwitch);
  }
};

/// Chen et al. 2023: the sign of a mean of gradients, and weight decay apart from it.
struct LionOptions {
  static constexpr const char* kName = "Lion";
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    field("lr", o.lr, kNotNegative);
    field("beta1", o.beta1, kBelowOne);
    field("beta2", o.beta2, kBelowOne);
    field("weight_decay", o.weight_decay, kNotNegative);
    field("maximize", o.maximize, kSwitch);
  }
};

/// The optimizer with these options: SGD(params, {.lr = 0.1}).
template <class O>
class BAREGRAD_API OptimizerWith : public Optimizer {
 public:
  using Options = O;
  explicit OptimizerWith(Tensors params, const Options& options = {});
  void add_group(Tensors params, const Options& options = {});
};
using SGD = OptimizerWith<SGDOptions>;
using Adam = OptimizerWith<AdamOptions>;
using AdamW = OptimizerWith<AdamWOptions>;
using RMSprop = OptimizerWith<RMSpropOptions>;
using Adagrad = OptimizerWith<AdagradOptions>;
using Lion = OptimizerWith<LionOptions>;

template <class... T>
struct OptimizerList {};
/// All of them: Python and the command line know those that stand here.
using AllOptimizers = OptimizerList<SGD, Adam, AdamW, RMSprop, Adagrad, Lion>;

// ---- Gradients ---------------------------------------------------------------------------------

/// Scales all gradients together so that their norm is at most `max_norm`, and returns what it was,
/// accumulated in double, with the same bits at any number of threads. With `error_if_nonfinite` a
/// norm that is not finite throws ValueError before anything is changed; else NaN spreads to all.
BAREGRAD_API double clip_grad_norm_(const Tensors& params, double max_norm,
                                    bool error_if_nonfinite = false);
/// PyTorch's third argument, the order of the norm, is always 2 here.
template <NoSwitch T>
double clip_grad_norm_(const Tensors&, double, T) = delete;
/// Every element of every gradient into [-limit, limit]; NaN stays.
BAREGRAD_API void clip_grad_value_(const Tensors& params, double limit);

// ---- Moving averages ---------------------------------------------------------------------------

/// Exponential moving averages of parameters, beginning with their values now: after each update,
/// average = decay * average + (1 - decay) * parameter. Kept in float32 for float16 and bfloat16.
/// Where a parameter's dtype has changed (Module::to), its average is converted when it is used
/// next.
class BAREGRAD_API EMA {
 public:
  explicit EMA(Tensors params, double decay = 0.999);
  ~EMA();
  EMA(const EMA&) = delete;
  EMA& operator=(const EMA&) = delete;

  double decay() const noexcept;
  const Tensors& averages() const noexcept;
  std::int64_t updates() const noexcept;
  void update();
  /// Writes the averages into the parameters.
  void copy_to() const;
  /// Exchanges averages and parameters: before an evaluation, and after it.
  void swap();
  State state() const;
  void load_state(const State& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Schedules ---------------------------------------------------------------------------------

/// The learning rate at a step, from the one the group had at first. Curves are closed forms: a run
/// that resumes at step n has the bits of one that never stopped.
using Curve = std::function<double(std::int64_t step, double base)>;

/// base * gamma^(step / step_size)
[[nodiscard]] BAREGRAD_API Curve step_curve(std::int64_t step_size, double gamma = 0.1);
/// base * gamma^(milestones reached)
[[nodiscard]] BAREGRAD_API Curve multi_step_curve(std::vector<std::int64_t> milestones,
                                                  double gamma = 0.1);
/// base * gamma^step
[[nodiscard]] BAREGRAD_API Curve exponential_curve(double gamma);
/// From base to eta_min in `period` steps along a cosine, and back.
[[nodiscard]] BAREGRAD_API Curve cosine_curve(std::int64_t period, double eta_min = 0);
/// From base to eta_min in `period` steps, then again, each time `factor` times longer.
[[nodiscard]] BAREGRAD_API Curve cosine_restarts_curve(std::int64_t period, std::int64_t factor = 1,
                                                       double eta_min = 0);
/// base times a factor that goes from `start` to `end` in `steps` steps: a warm-up.
[[nodiscard]] BAREGRAD_API Curve linear_curve(double start = 1.0 / 3, double end = 1,
                                              std::int64_t steps = 5);
/// curves[k] from milestones[k - 1] on, counting its own steps from there.
[[nodiscard]] BAREGRAD_API Curve sequential_curve(std::vector<Curve> curves,
                                                  std::vector<std::int64_t> milestones);

/// Sets the lr of every group: when made, and after each step. The optimizer must outlive it.
class BAREGRAD_API LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer, Curve curve);
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// To be called after Optimizer::step.
  void step();
  std::int64_t last_step() const noexcept { return step_; }
  /// By group.
  std::vector<double> last_lr() const;

  /// The step and each group's first lr. What the curve is made of is not kept: it must be given
  /// the same numbers again.
  State state() const;
  void load_state(const State& state);

 protected:
  LRScheduler(Optimizer& optimizer, const char* name, Curve curve, Curve momentum,
              std::vector<double> bases);

 private:
  void apply();

  Optimizer& optimizer_;
  const char* name_;
  Curve curve_;
  Curve momentum_;  // empty: left alone
  std::vector<double> bases_;
  std::int64_t step_ = 0;
};

class BAREGRAD_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);
};
class BAREGRAD_API MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma = 0.1);
};
class BAREGRAD_API ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
};
class BAREGRAD_API CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, std::int64_t period, double eta_min = 0);
};
class BAREGRAD_API CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, std::int64_t period, std::int64_t factor = 1,
                              double eta_min = 0);
};
class BAREGRAD_API LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start = 1.0 / 3, double end = 1,
                    std::int64_t steps = 5);
};
/// Warm-up, then cosine: SequentialLR(optimizer, {linear_curve(0.01, 1, 100), cosine_curve(900)},
/// {100}).
class BAREGRAD_API SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<Curve> curves,
               std::vector<std::int64_t> milestones);
};

struct OneCycleOptions {
  std::vector<double> max_lr = {};  ///< one for all groups, or one for each
  std::int64_t total_steps = 0;
  double pct_start = 0.3;      ///< the part of the steps in which lr grows
  bool linear = false;         ///< else along cosines
  bool cycle_momentum = true;  ///< "momentum" or "beta1", against the lr
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the first lr is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last lr is the first / final_div_factor
  bool three_phase = false;       ///< down to the first lr as it went up, then further
};
/// Smith and Topin 2018: lr up and down, momentum down and up. A step beyond total_steps throws
/// ValueError.
class BAREGRAD_API OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);
};

struct PlateauOptions {
  bool maximize = false;  ///< greater is better
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  bool relative = true;  ///< of the threshold, to the best so far
  std::int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;  ///< a smaller change of lr is not made
};
/// Multiplies lr by a factor when a metric has not become better for more than `patience` steps.
class BAREGRAD_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double metric);
  double best() const noexcept { return best_; }
  std::vector<double> last_lr() const;
  /// The lr itself is the optimizer's to keep.
  State state() const;
  void load_state(const State& state);

 private:
  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  std::int64_t bad_steps_ = 0;
  std::int64_t cooling_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace baregrad::optim
