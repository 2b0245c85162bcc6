// Schedules: closed forms of a learning rate over steps, and the objects that apply them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "baregrad/error.h"
#include "baregrad/optim.h"
#include "core/message.h"
#include "core/number_text.h"
#include "optim/values.h"

namespace baregrad::optim {

namespace {

void require(bool holds, const char* who, const std::string& what) {
  if (!holds) throw ValueError(message(who, ": ", what));
}

/// Interpolates from a to b while `part` goes from 0 to 1.
double along_cosine(double a, double b, double part) {
  return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * part));
}

double half_wave(double base, double eta_min, double part) {
  return eta_min + (base - eta_min) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

/// A phase of a cycle; it ends at the step `end`.
struct Phase {
  double end;
  int lr[2];  // from, to: 0 is max_lr, 1 the first lr, 2 the last lr
  double momentum[2];
};

std::vector<Phase> one_cycle_phases(const OneCycleOptions& o) {
  const auto steps = static_cast<double>(o.total_steps);
  const double high = o.max_momentum;
  const double low = o.base_momentum;
  if (o.three_phase) {
    return {{o.pct_start * steps - 1, {1, 0}, {high, low}},
            {2 * o.pct_start * steps - 2, {0, 1}, {low, high}},
            {steps - 1, {1, 2}, {high, high}}};
  }
  return {{o.pct_start * steps - 1, {1, 0}, {high, low}}, {steps - 1, {0, 2}, {low, high}}};
}

/// The curves of lr and momentum: the same phases over different values.
Curve one_cycle_curve(const OneCycleOptions& o, bool momentum) {
  return [o, momentum, phases = one_cycle_phases(o)](std::int64_t step, double max_lr) {
    const auto at = static_cast<double>(step);
    double begin = 0;
    const Phase* phase = &phases[0];
    while (phase != &phases.back() && at > phase->end) begin = (phase++)->end;
    const double part = phase->end > begin ? (at - begin) / (phase->end - begin) : 1;
    const double first = max_lr / o.div_factor;
    const double lrs[] = {max_lr, first, first / o.final_div_factor};
    const double a = momentum ? phase->momentum[0] : lrs[phase->lr[0]];
    const double b = momentum ? phase->momentum[1] : lrs[phase->lr[1]];
    return o.linear ? (b - a) * part + a : along_cosine(a, b, part);
  };
}

}  // namespace

// ---- Curves

Curve step_curve(std::int64_t step_size, double gamma) {
  require(step_size > 0, "StepLR", message("step_size is ", step_size, ", not positive"));
  return [=](std::int64_t step, double base) {
    const std::int64_t drops = step / step_size;
    return base * std::pow(gamma, static_cast<double>(drops));
  };
}

Curve multi_step_curve(std::vector<std::int64_t> milestones, double gamma) {
  std::sort(milestones.begin(), milestones.end());
  return [milestones = std::move(milestones), gamma](std::int64_t step, double base) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step);
    return base * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
  };
}

Curve exponential_curve(double gamma) {
  return [=](std::int64_t step, double base) {
    return base * std::pow(gamma, static_cast<double>(step));
  };
}

Curve cosine_curve(std::int64_t period, double eta_min) {
  require(period > 0, "CosineAnnealingLR", message("the period is ", period, ", not positive"));
  return [=](std::int64_t step, double base) {
    return half_wave(base, eta_min, static_cast<double>(step) / static_cast<double>(period));
  };
}

Curve cosine_restarts_curve(std::int64_t period, std::int64_t factor, double eta_min) {
  constexpr const char* kWho = "CosineAnnealingWarmRestarts";
  require(period > 0, kWho, message("the period is ", period, ", not positive"));
  require(factor > 0, kWho, message("the factor is ", factor, ", not positive"));
  return [=](std::int64_t step, double base) {
    std::int64_t length = period;
    if (factor == 1) {
      step %= length;
    } else {
      constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
      while (step >= length) {
        step -= length;
        length = length > kMost / factor ? kMost : length * factor;
      }
    }
    return half_wave(base, eta_min, static_cast<double>(step) / static_cast<double>(length));
  };
}

Curve linear_curve(double start, double end, std::int64_t steps) {
  constexpr const char* kWho = "LinearLR";
  require(start > 0 && start <= 1, kWho,
          message("the first factor is ", number_text(start), ", not in (0, 1]"));
  require(end >= 0 && end <= 1, kWho,
          message("the last factor is ", number_text(end), ", not in [0, 1]"));
  require(steps > 0, kWho, message("there are ", steps, " steps, not a positive number"));
  return [=](std::int64_t step, double base) {
    const auto done = static_cast<double>(std::min(step, steps));
    return base * (start + (end - start) * done / static_cast<double>(steps));
  };
}

Curve sequential_curve(std::vector<Curve> curves, std::vector<std::int64_t> milestones) {
  constexpr const char* kWho = "SequentialLR";
  require(!curves.empty() && milestones.size() + 1 == curves.size(), kWho,
          message(curves.size(), " curves need one milestone less, not ", milestones.size()));
  require(std::all_of(curves.begin(), curves.end(), [](const Curve& c) { return bool(c); }), kWho,
          "a curve is empty");
  require(std::is_sorted(milestones.begin(), milestones.end()), kWho,
          "the milestones are not in order");
  return [curves = std::move(curves), milestones = std::move(milestones)](std::int64_t step,
                                                                          double base) {
    const auto next = std::upper_bound(milestones.begin(), milestones.end(), step);
    const auto k = static_cast<std::size_t>(next - milestones.begin());
    return curves[k](k == 0 ? step : step - milestones[k - 1], base);
  };
}

// ---- LRScheduler

namespace {
std::string base_key(std::size_t group) { return "base." + std::to_string(group); }
}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer, Curve curve)
    : LRScheduler(optimizer, "LRScheduler", std::move(curve), {}, {}) {}

LRScheduler::LRScheduler(Optimizer& optimizer, const char* name, Curve curve, Curve momentum,
                         std::vector<double> bases)
    : optimizer_(optimizer),
      name_(name),
      curve_(std::move(curve)),
      momentum_(std::move(momentum)),
      bases_(std::move(bases)) {
  require(static_cast<bool>(curve_), name_, "the curve is empty");
  if (bases_.empty()) bases_ = last_lr();
  apply();
}

LRScheduler::~LRScheduler() = default;

void LRScheduler::step() {
  ++step_;
  try {
    apply();
  } catch (...) {
    --step_;
    throw;
  }
}

std::vector<double> LRScheduler::last_lr() const {
  std::vector<double> lrs;
  for (const Group& group : optimizer_.groups()) lrs.push_back(group.lr());
  return lrs;
}

void LRScheduler::apply() {
  std::vector<Group>& groups = optimizer_.groups();
  if (groups.size() != bases_.size()) {
    throw ValueError(message(name_, ": the optimizer has ", groups.size(), " groups; it had ",
                             bases_.size(), " when the schedule was made"));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double lr = curve_(step_, bases_[i]);
    if (momentum_) {
      groups[i][groups[i].has("momentum") ? "momentum" : "beta1"] = momentum_(step_, bases_[i]);
    }
    groups[i].set_lr(lr);
  }
}

State LRScheduler::state() const {
  State state;
  state.values["schedule"] = name_;
  state.values["step"] = std::to_string(step_);
  state.values["groups"] = std::to_string(bases_.size());
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    state.values[base_key(i)] = number_text(bases_[i]);
  }
  return state;
}

void LRScheduler::load_state(const State& state) {
  StateReader reader(state, std::string(name_) + ".load_state");
  reader.expect("schedule", name_);
  reader.expect("groups", std::to_string(bases_.size()));
  std::int64_t step = reader.count("step");
  std::vector<double> bases;
  for (std::size_t i = 0; i < bases_.size(); ++i) bases.push_back(reader.number(base_key(i)));
  reader.finish();
  std::swap(step, step_);
  std::swap(bases, bases_);
  try {
    apply();
  } catch (...) {
    std::swap(step, step_);
    std::swap(bases, bases_);
    throw;
  }
}

// ---- The schedules

StepLR::StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma)
    : LRScheduler(optimizer, "StepLR", step_curve(step_size, gamma), {}, {}) {}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma)
    : LRScheduler(optimizer, "MultiStepLR", multi_step_curve(std::move(milestones), gamma), {},
                  {}) {}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer, "ExponentialLR", exponential_curve(gamma), {}, {}) {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, std::int64_t period, double eta_min)
    : LRScheduler(optimizer, "CosineAnnealingLR", cosine_curve(period, eta_min), {}, {}) {}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, std::int64_t period,
                                                         std::int64_t factor, double eta_min)
    : LRScheduler(optimizer, "CosineAnnealingWarmRestarts",
                  cosine_restarts_curve(period, factor, eta_min), {}, {}) {}

LinearLR::LinearLR(Optimizer& optimizer, double start, double end, std::int64_t steps)
    : LRScheduler(optimizer, "LinearLR", linear_curve(start, end, steps), {}, {}) {}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<Curve> curves,
                           std::vector<std::int64_t> milestones)
    : LRScheduler(optimizer, "SequentialLR",
                  sequential_curve(std::move(curves), std::move(milestones)), {}, {}) {}

namespace {

std::vector<double> one_cycle_bases(const Optimizer& optimizer, const OneCycleOptions& o) {
  constexpr const char* kWho = "OneCycleLR";
  const std::size_t groups = optimizer.groups().size();
  require(o.max_lr.size() == 1 || o.max_lr.size() == groups, kWho,
          message("there are ", o.max_lr.size(), " values of max_lr for ", groups, " groups"));
  require(o.total_steps > 0, kWho, message("total_steps is ", o.total_steps, ", not positive"));
  require(o.pct_start >= 0 && o.pct_start <= 1, kWho,
          message("pct_start is ", number_text(o.pct_start), ", not in [0, 1]"));
  for (const Group& group : optimizer.groups()) {
    require(!o.cycle_momentum || group.has("momentum") || group.has("beta1"), kWho,
            message(optimizer.name(), " has no momentum; set cycle_momentum to false"));
  }
  return o.max_lr.size() == 1 ? std::vector<double>(groups, o.max_lr[0]) : o.max_lr;
}

Curve bounded(Curve curve, std::int64_t total_steps) {
  return [curve = std::move(curve), total_steps](std::int64_t step, double base) {
    if (step > total_steps) {
      throw ValueError(
          message("OneCycleLR: step ", step, " lies beyond total_steps, ", total_steps));
    }
    return curve(step, base);
  };
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options)
    : LRScheduler(optimizer, "OneCycleLR",
                  bounded(one_cycle_curve(options, false), options.total_steps),
                  options.cycle_momentum ? one_cycle_curve(options, true) : Curve(),
                  one_cycle_bases(optimizer, options)) {}

// ---- ReduceLROnPlateau

namespace {

double worst(const PlateauOptions& options) {
  const double inf = std::numeric_limits<double>::infinity();
  return options.maximize ? -inf : inf;
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer), options_(options), best_(worst(options)) {
  require(options.factor < 1, "ReduceLROnPlateau",
          message("the factor is ", number_text(options.factor), ", not below 1"));
}

void ReduceLROnPlateau::step(double metric) {
  const PlateauOptions& o = options_;
  ++step_;
  const double limit = o.relative ? best_ * (o.maximize ? o.threshold + 1 : 1 - o.threshold)
                                  : best_ + (o.maximize ? o.threshold : -o.threshold);
  if (o.maximize ? metric > limit : metric < limit) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= o.patience) return;
  for (Group& group : optimizer_.groups()) {
    const double lr = std::max(group.lr() * o.factor, o.min_lr);
    if (group.lr() - lr > o.eps) group.set_lr(lr);
  }
  cooling_ = o.cooldown;
  bad_steps_ = 0;
}

std::vector<double> ReduceLROnPlateau::last_lr() const {
  std::vector<double> lrs;
  for (const Group& group : optimizer_.groups()) lrs.push_back(group.lr());
  return lrs;
}

State ReduceLROnPlateau::state() const {
  State state;
  state.values["schedule"] = "ReduceLROnPlateau";
  state.values["best"] = number_text(best_);
  state.values["bad_steps"] = std::to_string(bad_steps_);
  state.values["cooling"] = std::to_string(cooling_);
  state.values["step"] = std::to_string(step_);
  return state;
}

void ReduceLROnPlateau::load_state(const State& state) {
  StateReader reader(state, "ReduceLROnPlateau.load_state");
  reader.expect("schedule", "ReduceLROnPlateau");
  const double best = reader.number("best");
  const std::int64_t bad_steps = reader.count("bad_steps");
  const std::int64_t cooling = reader.count("cooling");
  const std::int64_t step = reader.count("step");
  reader.finish();
  best_ = best;
  bad_steps_ = bad_steps;
  cooling_ = cooling;
  step_ = step;
}

}  // namespace baregrad::optim
