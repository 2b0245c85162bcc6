// Module: the tree of parameters, buffers and children, and what is done to all of them.
// Rule of this room: layers are made of public ops and hold no kernels and no gradient rules.
#include "baregrad/nn/module.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <ostream>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include <cxxabi.h>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/place.h"
#include "core/stack.h"
#include "nn/name_scope.h"

namespace baregrad::nn {

namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

/// Tensors seen so far, by identity. Views of one storage at one place are told apart.
class Seen {
 public:
  /// False when it was there already.
  bool insert(const Tensor& t) {
    std::vector<const Tensor*>& same_place = at_[place_of(t)];
    for (const Tensor* other : same_place) {
      if (other->is_same(t)) return false;
    }
    same_place.push_back(&t);
    return true;
  }

 private:
  std::unordered_map<const void*, std::vector<const Tensor*>> at_;
};

/// Modules that the destructor in progress on this thread has still to drop.
thread_local std::vector<std::pair<std::string, ModulePtr>>* t_leaving = nullptr;

/// Of all names of a tree together. Names of modules that are nested n deep have n parts.
constexpr std::size_t kMostNameBytes = std::size_t{1} << 28;

/// Whether `wanted` is `root` or below it.
bool is_within(const Module& wanted, const Module& root) {
  std::unordered_set<const Module*> seen;
  std::vector<const Module*> waiting = {&root};
  while (!waiting.empty()) {
    const Module* next = waiting.back();
    waiting.pop_back();
    if (next == &wanted) return true;
    if (!seen.insert(next).second) continue;
    for (const auto& [name, child] : next->children()) waiting.push_back(child.get());
  }
  return false;
}

}  // namespace

Module::~Module() {
  // What is below goes one after the other and never inside each other: it may be nested deep.
  if (children_.empty()) return;
  if (t_leaving != nullptr) {
    std::move(children_.begin(), children_.end(), std::back_inserter(*t_leaving));
    return;
  }
  std::vector<std::pair<std::string, ModulePtr>> leaving = std::move(children_);
  t_leaving = &leaving;
  while (!leaving.empty()) {
    const ModulePtr next = std::move(leaving.back().second);
    leaving.pop_back();
  }
  t_leaving = nullptr;
}

Tensor Module::forward(const Tensor&) {
  throw ValueError(message(type_name(), ": has no forward of one tensor; call the one it has"));
}

Tensor Module::operator()(const Tensor& x) {
  check_members();
  const NameScope scope(*this);
  return call_ ? call_(*this, x) : forward(x);
}

void Module::check_name(const std::string& name, const char* who) const {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw ValueError(message(who, ": \"", name, "\" in ", type_name(),
                             ": a name must not be empty and must not hold a dot"));
  }
  if (name.find('\0') != std::string::npos) {
    throw ValueError(message(who, ": a name in ", type_name(), " holds a NUL character"));
  }
  const auto taken = [&](const auto& list, auto key) {
    return std::any_of(list.begin(), list.end(), [&](const auto& it) { return key(it) == name; });
  };
  const auto slot_name = [](const Slot& s) -> const std::string& { return s.name; };
  const auto child_name = [](const auto& c) -> const std::string& { return c.first; };
  if (taken(parameters_, slot_name) || taken(buffers_, slot_name) || taken(children_, child_name)) {
    throw ValueError(message(who, ": ", type_name(), " has a \"", name, "\" already"));
  }
}

void Module::register_parameter(std::string name, Tensor& member) {
  check_name(name, "register_parameter");
  if (member.defined()) member.requires_grad_();
  parameters_.push_back({std::move(name), &member, true, false, member});
}

void Module::settle(Slot& slot) const {
  const Tensor& old = slot.registered;
  const Tensor& given = *slot.tensor;
  const bool trains = given.defined() && given.is_leaf() &&
                      (given.requires_grad() || (old.defined() && !old.requires_grad()));
  if (old.defined() && !(trains && given.shape() == old.shape())) {
    throw ValueError(message(
        type_name(), ": ", describe(given), " was assigned to the parameter \"", slot.name, "\", ",
        describe(old),
        ", and is no leaf of this shape that requires a gradient: it would not be "
        "trained; copy_ the values under no_grad, or exchange the tensor by set_parameter"));
  }
  if (!old.defined() && !slot.kept) given.requires_grad_();  // one that was left out at first
  slot.registered = given;
}

void Module::register_buffer(std::string name, Tensor& member, bool persistent) {
  check_name(name, "register_buffer");
  buffers_.push_back({std::move(name), &member, persistent, false, {}});
}

void Module::check_child(const std::string& name, const ModulePtr& module) const {
  constexpr const char* kWho = "register_module";
  if (!module) throw ValueError(message(kWho, ": \"", name, "\" of ", type_name(), " is null"));
  // One that has no name was never put below another.
  if (module.get() != this && (name_.empty() || !is_within(*this, *module))) return;
  throw ValueError(message(kWho, ": \"", name, "\" holds this ", type_name(),
                           " itself; a module cannot be below itself"));
}

void Module::attach(const std::string& name, ModulePtr module) {
  check_name(name, "register_module");
  check_child(name, module);
  module->name_ = name;
  children_.emplace_back(name, std::move(module));
}

// ---- Parts that are no members ------------------------------------------------------------------

Tensor& Module::add_parameter(std::string name, Tensor value) {
  check_name(name, "add_parameter");
  kept_.push_back(std::make_unique<Tensor>(value));
  parameters_.push_back({std::move(name), kept_.back().get(), true, true, std::move(value)});
  return *kept_.back();
}

Tensor& Module::add_buffer(std::string name, Tensor value, bool persistent) {
  check_name(name, "add_buffer");
  kept_.push_back(std::make_unique<Tensor>(std::move(value)));
  buffers_.push_back({std::move(name), kept_.back().get(), persistent, true, {}});
  return *kept_.back();
}

void Module::replace_own(const std::string& name, Tensor value) {
  for (std::vector<Slot>* slots : {&parameters_, &buffers_}) {
    for (Slot& slot : *slots) {
      if (slot.name != name) continue;
      if (slots == &parameters_) slot.registered = value;
      *slot.tensor = std::move(value);
      return;
    }
  }
  throw ValueError(
      message("replace_own: ", type_name(), " has no parameter or buffer \"", name, "\""));
}

namespace {

[[noreturn]] void throw_member(const Module& module, const std::string& name, const char* who) {
  throw ValueError(message(who, ": \"", name, "\" is a part of ", module.type_name(),
                           " itself and cannot be replaced or removed"));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void Module::add_module(const std::string& name, ModulePtr module) {
  const auto at = std::find_if(children_.begin(), children_.end(),
                               [&](const auto& child) { return child.first == name; });
  if (at == children_.end()) return attach(name, std::move(module));
  if (contains(members_, name)) throw_member(*this, name, "add_module");
  check_child(name, module);
  module->name_ = name;
  // Swapped, so that what the old one drops finds this module whole.
  std::swap(at->second, module);
}

bool Module::remove_slot(std::vector<Slot>& slots, const std::string& name) {
  const auto at =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  if (at == slots.end()) return false;
  if (!at->kept) throw_member(*this, name, "remove");
  const auto held = std::find_if(kept_.begin(), kept_.end(),
                                 [&](const auto& tensor) { return tensor.get() == at->tensor; });
  slots.erase(at);
  kept_.erase(held);
  return true;
}

bool Module::remove(const std::string& name) {
  if (remove_slot(parameters_, name) || remove_slot(buffers_, name)) return true;
  const auto at = std::find_if(children_.begin(), children_.end(),
                               [&](const auto& child) { return child.first == name; });
  if (at == children_.end()) return false;
  if (contains(members_, name)) throw_member(*this, name, "remove");
  const ModulePtr gone = std::move(at->second);
  children_.erase(at);
  return true;
}

/// Before what is below it, in registration order; without recursion.
std::vector<NamedModule> Module::walk(bool repeated) const {
  std::vector<NamedModule> found;
  std::unordered_set<const Module*> seen;
  std::vector<NamedModule> waiting = {{"", const_cast<Module*>(this)}};
  std::size_t bytes = 0;
  while (!waiting.empty()) {
    NamedModule next = std::move(waiting.back());
    waiting.pop_back();
    if (!repeated && !seen.insert(next.module).second) continue;
    bytes += next.name.size();
    if (bytes > kMostNameBytes) {
      throw ValueError(message(type_name(), ": the names of ", found.size(),
                               " modules, nested deep, take more than 256 MiB"));
    }
    const auto& below = next.module->children_;
    for (auto child = below.rbegin(); child != below.rend(); ++child) {
      waiting.push_back({joined(next.name, child->first), child->second.get()});
    }
    found.push_back(std::move(next));
  }
  return found;
}

std::vector<Module::NamedSlot> Module::slots(Slots which, bool repeated) const {
  std::vector<NamedSlot> found;
  Seen seen;
  for (const NamedModule& at : walk(repeated)) {
    const auto add = [&](std::vector<Slot>& list) {
      for (Slot& slot : list) {
        if (!slot.tensor->defined() || (which == Slots::State && !slot.persistent)) continue;
        if (!repeated && !seen.insert(*slot.tensor)) continue;
        found.push_back({joined(at.name, slot.name), slot.tensor, &slot});
      }
    };
    if (which != Slots::Buffers) {
      at.module->check_members();
      add(at.module->parameters_);
    }
    if (which != Slots::Parameters) add(at.module->buffers_);
  }
  return found;
}

NamedTensors Module::named_parameters() const {
  NamedTensors found;
  for (NamedSlot& slot : slots(Slots::Parameters, false)) {
    found.push_back({std::move(slot.name), *slot.tensor});
  }
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> found;
  for (const NamedSlot& slot : slots(Slots::Parameters, false)) found.push_back(*slot.tensor);
  return found;
}

NamedTensors Module::named_buffers() const {
  NamedTensors found;
  for (NamedSlot& slot : slots(Slots::Buffers, false)) {
    found.push_back({std::move(slot.name), *slot.tensor});
  }
  return found;
}

std::vector<NamedModule> Module::named_modules() { return walk(false); }

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedSlot& slot : slots(Slots::Parameters, false)) {
    count = checked_add(count, slot.tensor->numel(), "parameter_count");
  }
  return count;
}

NamedTensors Module::state_dict() const {
  NamedTensors state;
  for (NamedSlot& slot : slots(Slots::State, true)) {
    state.push_back({std::move(slot.name), slot.tensor->detach()});
  }
  return state;
}

namespace {

std::string listed(const char* what, const std::vector<std::string>& names) {
  std::string text = message("\n  ", what, ": ");
  for (std::size_t i = 0; i < names.size(); ++i) text += message(i == 0 ? "" : ", ", names[i]);
  return names.empty() ? "" : text;
}

/// Copying from one to the other loses the fraction, or invents one.
bool same_kind(DType a, DType b) {
  return is_floating(a) == is_floating(b) && is_bool(a) == is_bool(b);
}

}  // namespace

LoadResult Module::load_state_dict(const NamedTensors& state, bool strict) {
  std::unordered_map<std::string, const Tensor*> given;
  std::vector<std::string> twice;
  for (const NamedTensor& entry : state) {
    if (!given.emplace(entry.name, &entry.tensor).second) twice.push_back(entry.name);
  }
  const std::vector<NamedSlot> own = slots(Slots::State, true);
  LoadResult result;
  std::vector<std::string> unfit;
  std::unordered_set<std::string> known;
  std::vector<std::pair<Tensor*, const Tensor*>> copies;
  for (const NamedSlot& slot : own) {
    known.insert(slot.name);
    const auto found = given.find(slot.name);
    if (found == given.end()) {
      result.missing.push_back(slot.name);
      continue;
    }
    const Tensor& value = *found->second;
    if (!value.defined() || !(value.shape() == slot.tensor->shape()) ||
        !same_kind(value.dtype(), slot.tensor->dtype())) {
      unfit.push_back(message(slot.name, " (", describe(value), " given, ",
                              describe(slot.tensor->detach()), " needed)"));
      continue;
    }
    copies.emplace_back(slot.tensor, &value);
  }
  for (const NamedTensor& entry : state) {
    if (!known.contains(entry.name)) result.unexpected.push_back(entry.name);
  }
  const bool incomplete = !result.missing.empty() || !result.unexpected.empty();
  if (!unfit.empty() || !twice.empty() || (strict && incomplete)) {
    throw ValueError(
        message("load_state_dict: the state does not fit ", type_name(), "; nothing was loaded",
                strict ? listed("missing", result.missing) : "",
                strict ? listed("unexpected", result.unexpected) : "",
                listed("of the wrong shape or kind", unfit), listed("given twice", twice)));
  }
  const no_grad off;
  for (const auto& [to, from] : copies) to->copy_(from->detach());
  return result;
}

void Module::set_parameter(const std::string& name, const Tensor& value) {
  constexpr const char* kWho = "set_parameter";
  for (const NamedSlot& slot : slots(Slots::Parameters, true)) {
    if (slot.name != name) continue;
    if (!value.defined() || !(value.shape() == slot.tensor->shape())) {
      throw ShapeError(message(kWho, ": ", describe(value), " cannot take the place of ", name,
                               ", ", describe(*slot.tensor)));
    }
    *slot.tensor = value;
    slot.slot->registered = value;
    return;
  }
  throw ValueError(message(kWho, ": ", type_name(), " has no parameter \"", name, "\""));
}

Module& Module::train(bool on) {
  for (const NamedModule& at : walk(false)) at.module->training_ = on;
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& fn) {
  // Each parent after all below it; the order is fixed before fn may change anything.
  std::vector<Module*> order;
  std::unordered_set<const Module*> done;
  std::vector<std::pair<Module*, std::size_t>> open = {{this, 0}};
  done.insert(this);
  while (!open.empty()) {
    auto& [module, next] = open.back();
    if (next == module->children_.size()) {
      order.push_back(module);
      open.pop_back();
      continue;
    }
    Module* child = module->children_[next++].second.get();
    if (done.insert(child).second) open.emplace_back(child, 0);
  }
  for (Module* module : order) fn(*module);
  return *this;
}

namespace {

/// One tensor on its way to another dtype.
struct Conversion {
  Tensor before;
  Tensor after;
  Tensor gradient;  ///< undefined where there is none
};

Conversion converted(const Tensor& before, DType dtype) {
  Conversion made{before, astype(before.detach(), dtype), {}};
  const Tensor gradient = before.is_leaf() ? before.grad() : Tensor();
  if (gradient.defined()) made.gradient = astype(gradient.detach(), dtype);
  return made;
}

}  // namespace

Module& Module::to(DType dtype) {
  if (!is_floating(dtype)) {
    throw DTypeError(message("to: parameters are floating, ", type_name(), " cannot become ",
                             baregrad::name(dtype)));
  }
  const no_grad off;
  // Everything is computed first, so that a failure leaves the module whole.
  std::vector<Conversion> conversions;
  std::unordered_multimap<const void*, std::size_t> by_place;
  const auto conversion_of = [&](const Tensor& before) {
    const auto [first, last] = by_place.equal_range(place_of(before));
    for (auto it = first; it != last; ++it) {
      if (conversions[it->second].before.is_same(before)) return it->second;
    }
    by_place.emplace(place_of(before), conversions.size());
    conversions.push_back(converted(before, dtype));
    return conversions.size() - 1;
  };
  const auto changes = [&](const Tensor& t) {
    return is_floating(t.dtype()) && t.dtype() != dtype;
  };
  std::vector<std::size_t> kept;  // parameters that are leaves stay the tensors they are
  std::vector<std::pair<Slot*, std::size_t>> exchanged;
  for (const NamedSlot& slot : slots(Slots::Parameters, true)) {
    if (!changes(*slot.tensor)) continue;
    const std::size_t which = conversion_of(*slot.tensor);
    if (slot.tensor->is_leaf()) {
      kept.push_back(which);
    } else {
      exchanged.emplace_back(slot.slot, which);
    }
  }
  for (const NamedSlot& slot : slots(Slots::Buffers, true)) {
    if (changes(*slot.tensor)) exchanged.emplace_back(slot.slot, conversion_of(*slot.tensor));
  }
  std::vector<bool> stays(conversions.size());
  for (const std::size_t which : kept) stays[which] = true;
  for (const auto& [slot, which] : exchanged) {
    const Conversion& made = conversions[which];
    if (stays[which]) continue;  // a buffer that is a parameter, too, goes with it
    if (made.before.requires_grad()) made.after.requires_grad_();
    if (slot->registered.defined()) slot->registered = made.after;
    *slot->tensor = made.after;
  }
  for (const std::size_t which : kept) {
    const Conversion& made = conversions[which];
    if (made.before.dtype() == dtype) continue;  // tied: done before
    made.before.zero_grad();
    made.before.set_data(made.after);
    if (made.gradient.defined()) made.before.set_grad(made.gradient);
  }
  return *this;
}

Module& Module::requires_grad_(bool wanted) {
  for (const NamedSlot& slot : slots(Slots::Parameters, false)) slot.tensor->requires_grad_(wanted);
  return *this;
}

void Module::zero_grad() {
  for (const NamedSlot& slot : slots(Slots::Parameters, false)) slot.tensor->zero_grad();
}

// ---- Printing ---------------------------------------------------------------------------------

std::string Module::type_name() const {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !text) return "Module";
  // The last part of a::b<c::d>::E, not what stands inside the brackets.
  const std::string full = text.get();
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < full.size(); ++i) {
    if (full[i] == '<' || full[i] == '(') ++depth;
    if (full[i] == '>' || full[i] == ')') --depth;
    if (depth == 0 && full[i] == ':' && full[i + 1] == ':') begin = i + 2;
  }
  return full.substr(begin);
}

std::string Module::extra_repr() const { return ""; }

namespace {

void append_text(const Module& module, std::size_t indent, std::string& text) {
  check_stack("to_string");
  if (text.size() > kMostNameBytes) {
    throw ValueError("to_string: modules are nested so deep that the text is longer than 256 MiB");
  }
  const std::string extra = module.extra_repr();
  text += module.type_name();
  if (module.children().empty()) {
    text += message("(", extra, ")");
    return;
  }
  const std::string margin(indent + 2, ' ');
  text += "(\n";
  if (!extra.empty()) {
    text += margin;
    for (const char c : extra) {
      text += c;
      if (c == '\n') text.append(indent, ' ');
    }
    text += "\n";
  }
  for (const auto& [name, child] : module.children()) {
    text += margin;
    text += message("(", name, "): ");
    append_text(*child, indent + 2, text);
    text += "\n";
  }
  text.append(indent, ' ');
  text += ")";
}

}  // namespace

std::string Module::to_string() const {
  std::string text;
  append_text(*this, 0, text);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  return out << module.to_string();
}

}  // namespace baregrad::nn
