// The base class of all optimizers: groups, the step, saving and loading.
#include <algorithm>
#include <array>
#include <map>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/place.h"
#include "optim/rule.h"
#include "optim/step_calls.h"
#include "optim/values.h"
#include "optim/views.h"

namespace baregrad::optim {

namespace {

// At least as many as the optimizer with the most options has.
constexpr std::size_t kMaxSettings = 8;

/// The state of one parameter.
struct ParameterState {
  std::int64_t steps = 0;
  std::array<Tensor, kMaxStates> states;
  // Bit k: states[k] was allocated and no step has completed since.
  unsigned fresh = 0;
};

std::string key(std::size_t parameter, const char* name) {
  return std::to_string(parameter) + "." + name;
}
std::string group_key(std::size_t group) { return "group." + std::to_string(group) + "."; }

}  // namespace

void check_parameter(const Tensor& t, std::size_t index, const char* who) {
  if (!t.defined()) throw ValueError(message(who, ": parameter ", index, " is undefined"));
  if (!is_floating(t.dtype())) {
    throw DTypeError(message(who, ": parameter ", index, " is ", describe(t),
                             "; only floating tensors can be optimized"));
  }
  if (!t.is_leaf()) {
    throw GradError(message(who, ": parameter ", index, ", ", describe(t), ", is the result of ",
                            t.grad_fn(), "; only leaves can be optimized"));
  }
  if (t.layout().may_self_overlap()) {
    throw ValueError(message(who, ": parameter ", index, ", ", describe(t), " with strides ",
                             to_string(t.strides()),
                             ", holds some element more than once; clone it first"));
  }
}

// ---- Group

double& Group::operator[](std::string_view name) {
  std::string names;
  for (Setting& setting : settings_) {
    if (setting.name == name) return setting.value;
    names += (names.empty() ? "" : ", ") + std::string(setting.name);
  }
  throw ValueError(message(optimizer_ == nullptr ? "Group" : optimizer_, ": there is no setting '",
                           name, "'; there are ", names));
}

double Group::operator[](std::string_view name) const { return const_cast<Group&>(*this)[name]; }

bool Group::has(std::string_view name) const noexcept {
  return std::any_of(settings_.begin(), settings_.end(),
                     [&](const Setting& setting) { return setting.name == name; });
}

// ---- Optimizer

struct Optimizer::Impl {
  const OptimizerRule& rule;
  std::vector<Group> groups;
  std::vector<ParameterState> slots;  // of the parameters of all groups, in order

  // Of the current step. Reused, so that steps do not allocate.
  StepCalls calls;
  std::vector<std::size_t> moved;  // indices of the slots that are updated
};

namespace {

/// The problem with these values of the options; "" if they are valid.
std::string problem_of(const OptimizerRule& rule, const double* values) {
  for (std::size_t i = 0; i < rule.options.size(); ++i) {
    const auto& [least, most, below] = rule.options[i].range;
    const double v = values[i];
    if (v >= least && v <= most && !(below && v == most)) continue;
    return message(rule.options[i].name, " is ", number_text(v), ", not in [", number_text(least),
                   ", ", number_text(most), below ? ")" : "]");
  }
  const char* const together = rule.problem(values);
  return together == nullptr ? "" : together;
}

}  // namespace

Optimizer::Optimizer(const OptimizerRule& rule) : impl_(new Impl{rule, {}, {}, {}, {}}) {}
Optimizer::~Optimizer() = default;

const char* Optimizer::name() const noexcept { return impl_->rule.name; }
std::vector<Group>& Optimizer::groups() noexcept { return impl_->groups; }
const std::vector<Group>& Optimizer::groups() const noexcept { return impl_->groups; }

void Optimizer::add(Tensors params, const std::vector<double>& values) {
  const OptimizerRule& rule = impl_->rule;
  if (params.empty()) throw ValueError(message(rule.name, ": there are no parameters"));
  if (const std::string problem = problem_of(rule, values.data()); !problem.empty()) {
    throw ValueError(message(rule.name, ": ", problem));
  }
  // The new parameters by the address of the first element: only parameters with the same address
  // are compared.
  std::multimap<const void*, std::size_t> places;
  const auto compare = [&](const Tensor& other) {
    const auto [first, last] = places.equal_range(place_of(other));
    for (auto place = first; place != last; ++place) {
      const Tensor& t = params[place->second];
      if (t.numel() == 0) continue;
      if (!t.is_same(other) && (t.shape() != other.shape() || t.strides() != other.strides())) {
        continue;
      }
      throw ValueError(message(rule.name, ": parameter ", place->second, ", ", describe(t),
                               ", was given before"));
    }
  };
  for (std::size_t i = 0; i < params.size(); ++i) check_parameter(params[i], i, rule.name);
  for (std::size_t i = params.size(); i-- > 0;) {
    compare(params[i]);
    places.emplace(place_of(params[i]), i);
  }
  for (const Group& group : impl_->groups) {
    for (const Tensor& t : group.params_) compare(t);
  }
  Group group;
  group.params_ = std::move(params);
  group.optimizer_ = rule.name;
  for (std::size_t i = 0; i < rule.options.size(); ++i) {
    group.settings_.push_back({rule.options[i].name, values[i]});
  }
  // Memory first, growing by factors: there may be a group for each parameter.
  std::vector<ParameterState>& slots = impl_->slots;
  const std::size_t count = slots.size() + group.params_.size();
  if (slots.capacity() < count) slots.reserve(std::max(count, 2 * slots.capacity()));
  impl_->groups.push_back(std::move(group));
  slots.resize(count);
}

void Optimizer::step() {
  Impl& im = *impl_;
  const OptimizerRule& rule = im.rule;
  im.calls.clear();
  im.moved.clear();
  std::size_t index = 0;
  for (const Group& group : im.groups) {
    double settings[kMaxSettings];
    for (std::size_t i = 0; i < group.settings_.size(); ++i) settings[i] = group.settings_[i].value;
    const OptimizerRule::Choice choice = rule.choose(settings);
    const double initial = rule.initial(settings);
    // Parameters with the same number of steps share their numbers.
    std::int64_t last_steps = -1;
    bool last_first = false;
    for (const Tensor& parameter : group.params_) {
      ParameterState& slot = im.slots[index++];
      Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.same_storage(parameter)) gradient = clone(gradient.detach());
      const Tensor* tensors[kernels::kMaxStepOperands] = {&parameter, &gradient};
      std::size_t operands = 2;
      bool first = false;
      for (std::size_t k = 0; k < rule.states.size(); ++k) {
        if ((choice.states >> k & 1U) == 0) continue;
        Tensor& state = slot.states[k];
        if (!state.defined()) {
          state =
              full(parameter.shape(), initial, state_dtype(parameter.dtype()), parameter.device());
          slot.fresh |= 1U << k;
        } else if (!lies_beside(state, parameter)) [[unlikely]] {
          // The parameter was converted or moved since the last step.
          state = beside(state, parameter);
        }
        first |= (slot.fresh >> k & 1U) != 0;
        tensors[operands++] = &state;
      }
      if (slot.steps != last_steps || first != last_first) {
        StepNumbers made = rule.prepare(settings, static_cast<double>(slot.steps + 1));
        made.first = first;
        im.calls.set_numbers(made);
        last_steps = slot.steps;
        last_first = first;
      }
      im.calls.add(choice.kernel, {tensors, operands});
      im.moved.push_back(index - 1);
    }
  }
  im.calls.run(rule.name);
  for (const std::size_t i : im.moved) {
    ParameterState& slot = im.slots[i];
    ++slot.steps;
    slot.fresh = 0;
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Group& group : impl_->groups) {
    for (const Tensor& parameter : group.params_) {
      if (set_to_none) {
        parameter.zero_grad();
      } else if (const Tensor gradient = parameter.grad(); gradient.defined()) {
        if (gradient.layout().may_self_overlap()) {
          parameter.set_grad(zeros_like(gradient));
        } else {
          gradient.detach().fill_(0);
        }
      }
    }
  }
}

State Optimizer::state() const {
  const Impl& im = *impl_;
  State state;
  state.values["optimizer"] = im.rule.name;
  state.values["groups"] = std::to_string(im.groups.size());
  std::size_t index = 0;
  for (std::size_t g = 0; g < im.groups.size(); ++g) {
    const Group& group = im.groups[g];
    const std::string prefix = group_key(g);
    state.values[prefix + "params"] = std::to_string(group.params_.size());
    for (const Group::Setting& setting : group.settings_) {
      state.values[prefix + setting.name] = number_text(setting.value);
    }
    for (std::size_t i = 0; i < group.params_.size(); ++i, ++index) {
      const ParameterState& slot = im.slots[index];
      state.values[key(index, "step")] = std::to_string(slot.steps);
      // The names of the states are saved too: options may have changed since the last step.
      std::string names;
      for (std::size_t k = 0; k < im.rule.states.size(); ++k) {
        if (!slot.states[k].defined() || (slot.fresh >> k & 1U) != 0) continue;
        names += (names.empty() ? "" : ",") + std::string(im.rule.states[k]);
        state.tensors.push_back({key(index, im.rule.states[k]), slot.states[k]});
      }
      state.values[key(index, "tensors")] = names;
    }
  }
  return state;
}

void Optimizer::load_state(const State& state) {
  Impl& im = *impl_;
  StateReader reader(state, std::string(im.rule.name) + ".load_state");
  reader.expect("optimizer", im.rule.name);
  reader.expect("groups", std::to_string(im.groups.size()));
  std::vector<std::vector<double>> settings;
  std::vector<ParameterState> slots(im.slots.size());
  std::vector<const Tensor*> parameters;
  std::vector<std::array<const Tensor*, kMaxStates>> sources(im.slots.size());
  std::size_t index = 0;
  for (std::size_t g = 0; g < im.groups.size(); ++g) {
    const Group& group = im.groups[g];
    const std::string prefix = group_key(g);
    reader.expect(prefix + "params", std::to_string(group.params_.size()));
    std::vector<double>& values = settings.emplace_back();
    for (const Group::Setting& setting : group.settings_) {
      values.push_back(reader.number(prefix + setting.name));
    }
    if (const std::string problem = problem_of(im.rule, values.data()); !problem.empty()) {
      reader.add_problem(prefix + problem);
    }
    for (const Tensor& parameter : group.params_) {
      parameters.push_back(&parameter);
      slots[index].steps = reader.count(key(index, "step"));
      const std::string names = "," + reader.text(key(index, "tensors")) + ",";
      for (std::size_t k = 0; k < im.rule.states.size(); ++k) {
        const std::string name = im.rule.states[k];
        if (names.find("," + name + ",") == std::string::npos) continue;
        sources[index][k] = reader.tensor(key(index, name.c_str()), parameter);
      }
      ++index;
    }
  }
  reader.finish();

  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::size_t k = 0; k < kMaxStates; ++k) {
      if (sources[i][k] == nullptr) continue;
      slots[i].states[k] = beside(sources[i][k]->detach(), *parameters[i]);
    }
  }
  im.slots = std::move(slots);
  for (std::size_t g = 0; g < im.groups.size(); ++g) {
    for (std::size_t i = 0; i < settings[g].size(); ++i) {
      im.groups[g].settings_[i].value = settings[g][i];
    }
  }
}

}  // namespace baregrad::optim
