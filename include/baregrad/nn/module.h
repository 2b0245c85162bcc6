// Module: a layer or a network. Names its parameters, buffers and children, PyTorch's way.
#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "baregrad/dtype.h"
#include "baregrad/export.h"
#include "baregrad/state.h"
#include "baregrad/tensor.h"

namespace baregrad::nn {

/// An argument of a layer's constructor. A layer whose arguments all have defaults lists them once,
/// in the constructor's order:
///
///   auto arguments() const { return std::tuple(Argument{"alpha", alpha_}); }
///
/// What the layer prints, and what its constructor takes in Python, follow from the list.
template <class T>
struct Argument {
  const char* name;
  T value;
};
template <class T>
Argument(const char*, T) -> Argument<T>;

class Module;
using ModulePtr = std::shared_ptr<Module>;

struct NamedModule {
  std::string name;  ///< dotted; "" for the module that was asked
  Module* module;
};

/// What load_state_dict left out; both are empty after a strict load.
struct LoadResult {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

/// A parameter or buffer of one module, where it stands.
struct Slot {
  std::string name;
  Tensor* tensor;
  bool persistent = true;
  bool kept = false;       ///< by the module itself: no member of its class
  Tensor registered = {};  ///< of a parameter: the tensor that optimizers were given
};

/// Members are registered by reference, so a module stays where it was made, in a shared_ptr:
///
///   struct Net : nn::Module {
///     std::shared_ptr<nn::Linear> hidden = register_module("hidden", nn::make<nn::Linear>(784,
///     128)); std::shared_ptr<nn::Linear> out = register_module("out", nn::make<nn::Linear>(128,
///     10)); Tensor forward(const Tensor& x) override { return (*out)(relu((*hidden)(x))); }
///   };
///
/// Values are written into a parameter, `weight.copy_(...)` under no_grad: `weight = zeros(...)`
/// puts a tensor in its place that nobody trains, and the next call of the module or of one of its
/// lists throws ValueError. A leaf of the same shape that requires a gradient may be assigned, to
/// tie weights (`decoder->weight = encoder->weight`), before the optimizer is made.
///
/// Not for several threads at once, but for forward in eval mode and under no_grad.
class BAREGRAD_API Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the module computes. One with other arguments has its own overload and leaves this one,
  /// which throws.
  virtual Tensor forward(const Tensor& x);
  /// forward; ops recorded inside carry the module's name (see autograd::Label).
  Tensor operator()(const Tensor& x);

  /// In registration order, the module's own before its children's, under dotted names. A
  /// parameter that is registered twice (tied weights) is listed once, under its first name.
  [[nodiscard]] NamedTensors named_parameters() const;
  [[nodiscard]] std::vector<Tensor> parameters() const;
  [[nodiscard]] NamedTensors named_buffers() const;
  /// The children themselves, as registered.
  const std::vector<std::pair<std::string, ModulePtr>>& children() const noexcept {
    return children_;
  }
  /// Its name in the parent that registered it last, else "".
  const std::string& name() const noexcept { return name_; }
  /// This module and all below it, each once.
  [[nodiscard]] std::vector<NamedModule> named_modules();
  /// Elements of all parameters.
  [[nodiscard]] std::int64_t parameter_count() const;

  /// Parameters and persistent buffers under the names PyTorch gives them. Shares memory with the
  /// module; without history.
  [[nodiscard]] NamedTensors state_dict() const;
  /// Copies values in, converting dtypes of one kind. Throws one ValueError that names every
  /// missing, unexpected and ill-fitting key, before anything is written. Without `strict`, missing
  /// and unexpected keys are returned instead.
  LoadResult load_state_dict(const NamedTensors& state, bool strict = true);
  /// Puts `value` in the place of a parameter, by dotted name: to tie weights, or to call the
  /// module with tensors that have a history. Shapes must agree; throws ValueError, ShapeError. An
  /// optimizer that was made before goes on with the old tensor.
  void set_parameter(const std::string& name, const Tensor& value);

  /// Training (the default) or evaluation, here and below.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const noexcept { return training_; }

  /// fn on everything below, then on this module.
  Module& apply(const std::function<void(Module&)>& fn);
  /// Floating parameters (with their gradients) and buffers in another floating dtype. Parameters
  /// stay the tensors they are (see Tensor::set_data): optimizers, averages, hooks and other
  /// handles go on with them, tied ones stay tied. Buffers are new tensors. Where memory runs out,
  /// nothing has changed.
  Module& to(DType dtype);
  Module& requires_grad_(bool wanted = true);
  /// Drops all gradients.
  void zero_grad();

  // ---- Parts that are no members of a C++ class: networks put together at run time, and modules
  // ---- of other languages. The module keeps them itself.
  /// As register_parameter and register_buffer, but the tensor may be undefined and is left as it
  /// is. The reference holds until remove(name).
  Tensor& add_parameter(std::string name, Tensor value);
  Tensor& add_buffer(std::string name, Tensor value, bool persistent = true);
  /// Puts a tensor, perhaps an undefined one, in the place of the parameter or buffer of this name,
  /// which is one of the module's own. Throws ValueError when there is none.
  void replace_own(const std::string& name, Tensor value);
  /// Takes the place of a child of this name that was added before, or comes last.
  void add_module(const std::string& name, ModulePtr module);
  /// Forgets an added parameter, buffer or child; false when there is none of this name. Throws
  /// ValueError for what the class itself registered: it would go on using it.
  bool remove(const std::string& name);
  /// Whether one of its own parameters, buffers or children has this name. Takes the same time
  /// however many there are.
  [[nodiscard]] bool has_part(const std::string& name) const;
  /// Its own, without those of its children, in registration order.
  const std::vector<Slot>& own_parameters() const noexcept { return parameters_; }
  const std::vector<Slot>& own_buffers() const noexcept { return buffers_; }
  /// Training or evaluation of this module alone.
  void set_training(bool on) noexcept { training_ = on; }
  /// operator() calls this instead of forward; an empty one ends it. For hooks, and for modules
  /// whose forward is written in another language.
  using Call = std::function<Tensor(Module& module, const Tensor& x)>;
  void set_call(Call call) { call_ = std::move(call); }
  bool has_call() const noexcept { return static_cast<bool>(call_); }

  /// As PyTorch prints it: nested, each with its extra_repr.
  [[nodiscard]] std::string to_string() const;
  /// The class's name; what is inside the brackets of to_string.
  virtual std::string type_name() const;
  virtual std::string extra_repr() const;

 protected:
  /// `member` is the Tensor that holds the parameter, for the module's whole life; an undefined one
  /// (a bias that was not asked for) is not listed. Names are unique and hold no dot.
  void register_parameter(std::string name, Tensor& member);
  /// State without gradients; in state_dict if `persistent`.
  void register_buffer(std::string name, Tensor& member, bool persistent = true);
  /// Gives back what it was given, for the member that keeps it.
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    attach(name, module);
    members_.push_back(name);
    return module;
  }
  /// The same for a child that no member holds.
  void attach(const std::string& name, ModulePtr module);

 private:
  struct NamedSlot {
    std::string name;
    Tensor* tensor;
    Slot* slot;
  };
  enum class Slots { Parameters, Buffers, State, All };

  /// Throws ValueError where a member was assigned a tensor that would not be trained.
  void check_members() {
    for (Slot& slot : parameters_) {
      if (!slot.tensor->is_same(slot.registered)) [[unlikely]]
        settle(slot);
    }
  }
  void settle(Slot& slot) const;
  void check_child(const std::string& name, const ModulePtr& module) const;
  bool remove_slot(std::vector<Slot>& slots, const std::string& name);
  void check_name(const std::string& name, const char* who) const;
  /// After a part of this name is added; before one is removed.
  void note_added(const std::string& name) noexcept;
  void note_removed(const std::string& name) noexcept;
  std::vector<NamedModule> walk(bool repeated) const;
  std::vector<NamedSlot> slots(Slots which, bool repeated) const;

  std::vector<Slot> parameters_;
  std::vector<Slot> buffers_;
  std::vector<std::pair<std::string, ModulePtr>> children_;
  std::vector<std::string> members_;  // names of the children that the class holds too
  std::vector<std::unique_ptr<Tensor>> kept_;
  // Names of all parts, once there are many; null before: a few are soon compared.
  std::unique_ptr<std::unordered_set<std::string>> names_;
  Call call_;
  std::string name_;  // in the parent that registered it last
  bool training_ = true;
};

/// make<Linear>(784, 128)
template <class M, class... Args>
[[nodiscard]] std::shared_ptr<M> make(Args&&... args) {
  return std::make_shared<M>(std::forward<Args>(args)...);
}
/// make<Sequential>({...})
template <class M>
[[nodiscard]] std::shared_ptr<M> make(std::initializer_list<ModulePtr> modules) {
  return std::make_shared<M>(modules);
}

BAREGRAD_API std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace baregrad::nn
