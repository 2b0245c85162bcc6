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

/// The part of an optimizer that is its own: kernel, states, numbers of a step. Private.
struct OptimizerRule;

/// Parameters that share option values. A boolean option is 0 or 1.
class BAREGRAD_API Group {
 public:
  const Tensors& params() const noexcept { return params_; }
  /// The value of an option by its name: "lr", "weight_decay", ... Throws ValueError for an unknown
  /// name and lists the known ones. A value that is set here is not checked; the constructors and
  /// add_group check theirs.
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

/// The base class of all optimizers. A step is one pass over the memory of all parameters. Its
/// result has the same bits for any number of threads and on every instruction set. Only the first
/// step allocates memory. A step is not recorded; it counts as a write to each parameter.
///
/// The state of a parameter (means, momentum) has the parameter's dtype. For float16 and bfloat16
/// the state is float32: the step is computed in float32 and rounded once. If a parameter's dtype
/// changes (Module::to), the next step converts its state.
class BAREGRAD_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// "AdamW"
  const char* name() const noexcept;
  std::vector<Group>& groups() noexcept;
  const std::vector<Group>& groups() const noexcept;

  /// Updates every parameter that has a gradient, and its state. Other parameters do not change.
  /// Throws OutOfMemory before anything is written.
  void step();
  /// Removes the gradients. With `set_to_none` false, fills them with zeros in place.
  void zero_grad(bool set_to_none = true);

  /// Tensors such as "3.exp_avg", where 3 is the index of the parameter over all groups, and values
  /// such as "3.step" and "group.0.lr". The tensors are not copies: the next step writes to them.
  [[nodiscard]] State state() const;
  /// Restores a state. The next steps have the same bits as without the interruption if the dtypes
  /// are equal; floating tensors of another dtype are converted. Throws one ValueError that lists
  /// every mismatch with the parameters; nothing is changed in that case. The tensors are copied.
  void load_state(const State& state);

 protected:
  explicit Optimizer(const OptimizerRule& rule);
  /// Adds a group. Throws ValueError, DTypeError or GradError if there are no parameters, or if one
  /// of them is not floating, is not a leaf, was added before, or has elements that share memory.
  /// `values` are in the order of the rule's options.
  void add(Tensors params, const std::vector<double>& values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The valid values of an option: from `least` to `most`. `below` excludes `most` itself.
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

struct BAREGRAD_API SGDOptions {
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

struct BAREGRAD_API AdamOptions {
  static constexpr const char* kName = "Adam";
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  ///< weight_decay * parameter is added to the gradient
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

struct BAREGRAD_API AdamWOptions {
  static constexpr const char* kName = "AdamW";
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled: the parameter is multiplied by 1 - lr * weight_decay
  bool maximize = false;

  template <class Options, class F>
  static constexpr void fields(Options& o, const F& field) {
    AdamOptions::fields(o, field);
  }
};

struct BAREGRAD_API RMSpropOptions {
  static constexpr const char* kName = "RMSprop";
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< divide by the variance; never negative, PyTorch's may be by rounding
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

struct BAREGRAD_API AdagradOptions {
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

/// Chen et al. 2023: the sign of a mean of gradients, with decoupled weight decay.
struct BAREGRAD_API LionOptions {
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
/// All optimizers. The Python package and the command line offer the ones in this list.
using AllOptimizers = OptimizerList<SGD, Adam, AdamW, RMSprop, Adagrad, Lion>;

// ---- Gradients ---------------------------------------------------------------------------------

/// Scales all gradients by one factor so that their total norm is at most `max_norm`. Returns the
/// norm before scaling. The norm is accumulated in double, with the same bits for any number of
/// threads. A norm that is not finite: with `error_if_nonfinite`, throws ValueError before anything
/// is changed; without it, a NaN spreads to all gradients.
BAREGRAD_API double clip_grad_norm_(const Tensors& params, double max_norm,
                                    bool error_if_nonfinite = false);
/// In PyTorch the third argument is the order of the norm. Here the order is always 2.
template <NoSwitch T>
double clip_grad_norm_(const Tensors&, double, T) = delete;
/// Clamps every element of every gradient to [-limit, limit]. NaN stays NaN.
BAREGRAD_API void clip_grad_value_(const Tensors& params, double limit);

// ---- Moving averages ---------------------------------------------------------------------------

/// Exponential moving averages of parameters. They start as copies of the parameters. Each update
/// computes average = decay * average + (1 - decay) * parameter. The averages of float16 and
/// bfloat16 parameters are float32. If a parameter's dtype changes (Module::to), its average is
/// converted at its next use.
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
  /// Copies the averages to the parameters.
  void copy_to() const;
  /// Swaps averages and parameters. Called before an evaluation and again after it.
  void swap();
  State state() const;
  void load_state(const State& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Schedules ---------------------------------------------------------------------------------

/// The learning rate at a step; `base` is the initial learning rate of the group. Curves are closed
/// forms, so a run that is resumed at step n has the same bits as an uninterrupted one.
using Curve = std::function<double(std::int64_t step, double base)>;

/// base * gamma^(step / step_size)
[[nodiscard]] BAREGRAD_API Curve step_curve(std::int64_t step_size, double gamma = 0.1);
/// base * gamma^(milestones reached)
[[nodiscard]] BAREGRAD_API Curve multi_step_curve(std::vector<std::int64_t> milestones,
                                                  double gamma = 0.1);
/// base * gamma^step
[[nodiscard]] BAREGRAD_API Curve exponential_curve(double gamma);
/// A cosine from base to eta_min in `period` steps, and back to base.
[[nodiscard]] BAREGRAD_API Curve cosine_curve(std::int64_t period, double eta_min = 0);
/// A cosine from base to eta_min in `period` steps, then again from base. Each period is `factor`
/// times longer than the one before.
[[nodiscard]] BAREGRAD_API Curve cosine_restarts_curve(std::int64_t period, std::int64_t factor = 1,
                                                       double eta_min = 0);
/// base times a factor that changes linearly from `start` to `end` in `steps` steps: a warm-up.
[[nodiscard]] BAREGRAD_API Curve linear_curve(double start = 1.0 / 3, double end = 1,
                                              std::int64_t steps = 5);
/// curves[k] starts at milestones[k - 1]; its step 0 is that milestone.
[[nodiscard]] BAREGRAD_API Curve sequential_curve(std::vector<Curve> curves,
                                                  std::vector<std::int64_t> milestones);

/// Sets the lr of every group at construction and after each step. The optimizer must outlive it.
class BAREGRAD_API LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer, Curve curve);
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Call it after Optimizer::step.
  void step();
  std::int64_t last_step() const noexcept { return step_; }
  /// One value per group.
  std::vector<double> last_lr() const;

  /// The step and the initial lr of each group. The arguments of the curve are not saved: construct
  /// the schedule with the same arguments before load_state.
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
  Curve momentum_;  // empty: momentum is not changed
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
  double pct_start = 0.3;      ///< the fraction of the steps in which lr increases
  bool linear = false;         ///< linear; false: along cosines
  bool cycle_momentum = true;  ///< "momentum" or "beta1" goes down while lr goes up
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the first lr is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last lr is the first / final_div_factor
  bool three_phase = false;       ///< go down to the first lr as fast as up, then to the last lr
};
/// Smith and Topin 2018: lr up and down, momentum down and up. A step beyond total_steps throws
/// ValueError.
class BAREGRAD_API OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);
};

struct PlateauOptions {
  bool maximize = false;  ///< a greater metric is better
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  bool relative = true;  ///< the threshold is relative to the best metric so far
  std::int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;  ///< a change of lr smaller than this is skipped
};
/// Multiplies lr by `factor` when the metric has not improved for more than `patience` steps.
class BAREGRAD_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double metric);
  double best() const noexcept { return best_; }
  std::vector<double> last_lr() const;
  /// The lr itself is part of the optimizer's state.
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
