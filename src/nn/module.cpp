// Module: the tree of parameters, buffers and children, and the functions over it.
// The rule of nn/: layers are written in public ops; they contain no kernels and no gradient rules.
#include "baregrad/nn/module.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <ostream>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include <cxxabi.h>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/device_hooks.h"
#include "core/dtype_kind.h"
#include "core/message.h"
#include "core/place.h"
#include "core/stack.h"
#include "nn/name_scope.h"

namespace baregrad::nn {

namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

/// A set of tensors by identity. Two views of the same memory are different tensors.
class Seen {
 public:
  /// False if it was in the set.
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

/// The modules that the outermost destructor on this thread still has to release.
thread_local std::vector<std::pair<std::string, ModulePtr>>* t_leaving = nullptr;

/// The most bytes of all names of a tree. A name at depth n has n parts.
constexpr std::size_t kMostNameBytes = std::size_t{1} << 28;

/// Whether `wanted` is `root` or a module below it.
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
  // Children are released in a loop, not recursively: modules may be nested deep.
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
  if (has_part(name)) {
    throw ValueError(message(who, ": ", type_name(), " has a \"", name, "\" already"));
  }
}

bool Module::has_part(const std::string& name) const {
  if (names_ != nullptr) return names_->contains(name);
  const auto entry = [&](const ModuleTensor& s) { return s.name == name; };
  return std::any_of(parameters_.begin(), parameters_.end(), entry) ||
         std::any_of(buffers_.begin(), buffers_.end(), entry) ||
         std::any_of(children_.begin(), children_.end(),
                     [&](const auto& child) { return child.first == name; });
}

void Module::note_added(const std::string& name) noexcept try {
  constexpr std::size_t kFew = 32;
  if (names_ != nullptr) {
    names_->insert(name);
  } else if (parameters_.size() + buffers_.size() + children_.size() > kFew) {
    auto names = std::make_unique<std::unordered_set<std::string>>();
    for (const ModuleTensor& entry : parameters_) names->insert(entry.name);
    for (const ModuleTensor& entry : buffers_) names->insert(entry.name);
    for (const auto& [child, unused] : children_) names->insert(child);
    names_ = std::move(names);
  }
} catch (const std::bad_alloc&) {
  names_.reset();  // made anew at the next part
}

void Module::note_removed(const std::string& name) noexcept {
  if (names_ != nullptr) names_->erase(name);
}

void Module::register_parameter(std::string name, Tensor& member) {
  check_name(name, "register_parameter");
  if (member.defined()) member.requires_grad_();
  parameters_.push_back({std::move(name), &member, true, false, member});
  note_added(parameters_.back().name);
}

void Module::settle(ModuleTensor& entry) const {
  const Tensor& old = entry.registered;
  const Tensor& given = *entry.tensor;
  const bool trains = given.defined() && given.is_leaf() &&
                      (given.requires_grad() || (old.defined() && !old.requires_grad()));
  if (old.defined() && !(trains && given.shape() == old.shape())) {
    throw ValueError(message(
        type_name(), ": ", describe(given), " was assigned to the parameter \"", entry.name, "\", ",
        describe(old),
        ", and is no leaf of this shape that requires a gradient: it would not be "
        "trained; copy_ the values under no_grad, or exchange the tensor by set_parameter"));
  }
  if (!old.defined() && !entry.kept) given.requires_grad_();  // it was undefined at first
  entry.registered = given;
}

void Module::register_buffer(std::string name, Tensor& member, bool persistent) {
  check_name(name, "register_buffer");
  buffers_.push_back({std::move(name), &member, persistent, false, {}});
  note_added(buffers_.back().name);
}

void Module::check_child(const std::string& name, const ModulePtr& module) const {
  constexpr const char* kWho = "register_module";
  if (!module) throw ValueError(message(kWho, ": \"", name, "\" of ", type_name(), " is null"));
  // A module without a name was never registered in another one.
  if (module.get() != this && (name_.empty() || !is_within(*this, *module))) return;
  throw ValueError(message(kWho, ": \"", name, "\" holds this ", type_name(),
                           " itself; a module cannot be below itself"));
}

void Module::attach(const std::string& name, ModulePtr module) {
  check_name(name, "register_module");
  check_child(name, module);
  module->name_ = name;
  children_.emplace_back(name, std::move(module));
  note_added(name);
}

// ---- Parts that are no members ------------------------------------------------------------------

Tensor& Module::add_parameter(std::string name, Tensor value) {
  check_name(name, "add_parameter");
  kept_.push_back(std::make_unique<Tensor>(value));
  parameters_.push_back({std::move(name), kept_.back().get(), true, true, std::move(value)});
  note_added(parameters_.back().name);
  return *kept_.back();
}

Tensor& Module::add_buffer(std::string name, Tensor value, bool persistent) {
  check_name(name, "add_buffer");
  kept_.push_back(std::make_unique<Tensor>(std::move(value)));
  buffers_.push_back({std::move(name), kept_.back().get(), persistent, true, {}});
  note_added(buffers_.back().name);
  return *kept_.back();
}

void Module::replace_own(const std::string& name, Tensor value) {
  for (std::vector<ModuleTensor>* entries : {&parameters_, &buffers_}) {
    for (ModuleTensor& entry : *entries) {
      if (entry.name != name) continue;
      if (entries == &parameters_) entry.registered = value;
      *entry.tensor = std::move(value);
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

auto is_child(const std::string& name) {
  return [&name](const auto& child) { return child.first == name; };
}

/// The only one that fits. From the end, since lists are emptied from there.
template <class T, class Fits>
typename std::vector<T>::iterator find_last(std::vector<T>& list, Fits&& fits) {
  const auto found = std::find_if(list.rbegin(), list.rend(), fits);
  return found == list.rend() ? list.end() : std::prev(found.base());
}

}  // namespace

void Module::add_module(const std::string& name, ModulePtr module) {
  const auto at = has_part(name) ? find_last(children_, is_child(name)) : children_.end();
  if (at == children_.end()) return attach(name, std::move(module));
  if (contains(members_, name)) throw_member(*this, name, "add_module");
  check_child(name, module);
  module->name_ = name;
  // Swapped first: destructors of the old child may use this module.
  std::swap(at->second, module);
}

bool Module::remove_tensor(std::vector<ModuleTensor>& entries, const std::string& name) {
  const auto at = find_last(entries, [&](const ModuleTensor& entry) { return entry.name == name; });
  if (at == entries.end()) return false;
  if (!at->kept) throw_member(*this, name, "remove");
  const auto held =
      find_last(kept_, [&](const auto& tensor) { return tensor.get() == at->tensor; });
  note_removed(name);
  entries.erase(at);
  kept_.erase(held);
  return true;
}

bool Module::remove(const std::string& name) {
  if (!has_part(name)) return false;
  if (remove_tensor(parameters_, name) || remove_tensor(buffers_, name)) return true;
  const auto at = find_last(children_, is_child(name));
  if (at == children_.end()) return false;
  if (contains(members_, name)) throw_member(*this, name, "remove");
  const ModulePtr gone = std::move(at->second);
  note_removed(name);
  children_.erase(at);
  return true;
}

/// Lists a module before those below it, in registration order; without recursion.
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

std::vector<Module::NamedModuleTensor> Module::tensors_below(Which which, bool repeated) const {
  std::vector<NamedModuleTensor> found;
  Seen seen;
  for (const NamedModule& at : walk(repeated)) {
    const auto add = [&](std::vector<ModuleTensor>& list) {
      for (ModuleTensor& entry : list) {
        if (!entry.tensor->defined() || (which == Which::State && !entry.persistent)) continue;
        if (!repeated && !seen.insert(*entry.tensor)) continue;
        found.push_back({joined(at.name, entry.name), entry.tensor, &entry});
      }
    };
    if (which != Which::Buffers) {
      at.module->check_members();
      add(at.module->parameters_);
    }
    if (which != Which::Parameters) add(at.module->buffers_);
  }
  return found;
}

NamedTensors Module::named_parameters() const {
  NamedTensors found;
  for (NamedModuleTensor& entry : tensors_below(Which::Parameters, false)) {
    found.push_back({std::move(entry.name), *entry.tensor});
  }
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> found;
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, false))
    found.push_back(*entry.tensor);
  return found;
}

NamedTensors Module::named_buffers() const {
  NamedTensors found;
  for (NamedModuleTensor& entry : tensors_below(Which::Buffers, false)) {
    found.push_back({std::move(entry.name), *entry.tensor});
  }
  return found;
}

std::vector<NamedModule> Module::named_modules() { return walk(false); }

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, false)) {
    count = checked_add(count, entry.tensor->numel(), "parameter_count");
  }
  return count;
}

NamedTensors Module::state_dict() const {
  NamedTensors state;
  for (NamedModuleTensor& entry : tensors_below(Which::State, true)) {
    state.push_back({std::move(entry.name), entry.tensor->detach()});
  }
  return state;
}

namespace {

std::string listed(const char* what, const std::vector<std::string>& names) {
  std::string text = message("\n  ", what, ": ");
  for (std::size_t i = 0; i < names.size(); ++i) text += message(i == 0 ? "" : ", ", names[i]);
  return names.empty() ? "" : text;
}

}  // namespace

LoadResult Module::load_state_dict(const NamedTensors& state, bool strict) {
  std::unordered_map<std::string, const Tensor*> given;
  std::vector<std::string> twice;
  for (const NamedTensor& entry : state) {
    if (!given.emplace(entry.name, &entry.tensor).second) twice.push_back(entry.name);
  }
  const std::vector<NamedModuleTensor> own = tensors_below(Which::State, true);
  LoadResult result;
  std::vector<std::string> unfit;
  std::unordered_set<std::string> known;
  std::vector<std::pair<Tensor*, const Tensor*>> copies;
  for (const NamedModuleTensor& entry : own) {
    known.insert(entry.name);
    const auto found = given.find(entry.name);
    if (found == given.end()) {
      result.missing.push_back(entry.name);
      continue;
    }
    const Tensor& value = *found->second;
    if (!value.defined() || !(value.shape() == entry.tensor->shape()) ||
        kind_of(value.dtype()) != kind_of(entry.tensor->dtype())) {
      unfit.push_back(message(entry.name, " (", describe(value), " given, ",
                              describe(entry.tensor->detach()), " needed)"));
      continue;
    }
    copies.emplace_back(entry.tensor, &value);
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
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, true)) {
    if (entry.name != name) continue;
    if (!value.defined() || !(value.shape() == entry.tensor->shape())) {
      throw ShapeError(message(kWho, ": ", describe(value), " cannot take the place of ", name,
                               ", ", describe(*entry.tensor)));
    }
    *entry.tensor = value;
    entry.place->registered = value;
    return;
  }
  throw ValueError(message(kWho, ": ", type_name(), " has no parameter \"", name, "\""));
}

Module& Module::train(bool on) {
  for (const NamedModule& at : walk(false)) at.module->training_ = on;
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& fn) {
  // A parent comes after all modules below it. The order is fixed before fn can change the tree.
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

/// A tensor and its conversion to another dtype or device.
struct Conversion {
  Tensor before;
  Tensor after;
  Tensor gradient;  ///< undefined without one
};

/// What tensors are converted to. Tensors that are not floating keep their dtype.
struct Target {
  DTypeOption dtype;
  DeviceOption device;

  DType dtype_of(const Tensor& t) const {
    return is_floating(t.dtype()) ? dtype.value_or(t.dtype()) : t.dtype();
  }
  Device device_of(const Tensor& t) const { return device.value_or(t.device()); }
  bool changes(const Tensor& t) const {
    return dtype_of(t) != t.dtype() || device_of(t) != t.device();
  }
  Tensor converted(const Tensor& t) const {
    const Device there = device_of(t);
    // A copy on another device is memory of its own already.
    return to_device(astype(t.detach(), dtype_of(t), there == t.device()), there);
  }
};

Conversion converted(const Tensor& before, const Target& target) {
  Conversion made{before, target.converted(before), {}};
  const Tensor gradient = before.is_leaf() ? before.grad() : Tensor();
  if (gradient.defined()) made.gradient = target.converted(gradient);
  return made;
}

}  // namespace

Module& Module::to(DType dtype) { return convert(dtype, {}); }
Module& Module::to(Device device) { return convert({}, device); }
Module& Module::to(Device device, DType dtype) { return convert(dtype, device); }
Module& Module::cpu() { return convert({}, Device()); }

Module& Module::convert(std::optional<DType> dtype, std::optional<Device> device) {
  if (dtype && !is_floating(*dtype)) {
    throw DTypeError(message("to: parameters are floating, ", type_name(), " cannot become ",
                             baregrad::name(*dtype)));
  }
  if (device && !device->is_cpu()) detail::hooks_of(*device, "to");  // also without parameters
  const Target target{dtype, device};
  const no_grad off;
  // All conversions are computed first: an error leaves the module unchanged.
  std::vector<Conversion> conversions;
  std::unordered_multimap<const void*, std::size_t> by_place;
  const auto conversion_of = [&](const Tensor& before) {
    const auto [first, last] = by_place.equal_range(place_of(before));
    for (auto it = first; it != last; ++it) {
      if (conversions[it->second].before.is_same(before)) return it->second;
    }
    by_place.emplace(place_of(before), conversions.size());
    conversions.push_back(converted(before, target));
    return conversions.size() - 1;
  };
  std::vector<std::size_t> kept;  // parameters that are leaves remain the same tensors
  std::vector<std::pair<ModuleTensor*, std::size_t>> exchanged;
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, true)) {
    if (!target.changes(*entry.tensor)) continue;
    const std::size_t which = conversion_of(*entry.tensor);
    if (entry.tensor->is_leaf()) {
      kept.push_back(which);
    } else {
      exchanged.emplace_back(entry.place, which);
    }
  }
  for (const NamedModuleTensor& entry : tensors_below(Which::Buffers, true)) {
    if (!target.changes(*entry.tensor)) continue;
    exchanged.emplace_back(entry.place, conversion_of(*entry.tensor));
  }
  std::vector<bool> stays(conversions.size());
  for (const std::size_t which : kept) stays[which] = true;
  for (const auto& [entry, which] : exchanged) {
    const Conversion& made = conversions[which];
    if (stays[which]) continue;  // a buffer that is also a parameter is converted with it
    if (made.before.requires_grad()) made.after.requires_grad_();
    if (entry->registered.defined()) entry->registered = made.after;
    *entry->tensor = made.after;
  }
  for (const std::size_t which : kept) {
    const Conversion& made = conversions[which];
    if (made.before.same_storage(made.after)) continue;  // tied: already converted
    made.before.zero_grad();
    made.before.set_data(made.after);
    if (made.gradient.defined()) made.before.set_grad(made.gradient);
  }
  return *this;
}

Module& Module::requires_grad_(bool wanted) {
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, false))
    entry.tensor->requires_grad_(wanted);
  return *this;
}

void Module::zero_grad() {
  for (const NamedModuleTensor& entry : tensors_below(Which::Parameters, false))
    entry.tensor->zero_grad();
}

// ---- Printing ---------------------------------------------------------------------------------

std::string Module::type_name() const {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !text) return "Module";
  // The last part of a::b<c::d>::E, ignoring the template arguments.
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
