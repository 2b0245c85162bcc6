// Module: a layer or a network. Its parameters, buffers and children have names, as in PyTorch.
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
  std::string name;  ///< dotted; "" for the module itself
  Module* module;
};

/// The keys that load_state_dict did not use. Both lists are empty after a strict load.
struct LoadResult {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

/// A parameter or buffer of one module.
struct ModuleTensor {
  std::string name;
  Tensor* tensor;
  bool persistent = true;
  bool kept = false;       ///< owned by the module, not a member of its class
  Tensor registered = {};  ///< of a parameter: the tensor that optimizers refer to
};

/// Parameters and buffers are registered by address, so a module is neither copied nor moved. Each
/// child is held in a shared_ptr:
///
///   struct Net : nn::Module {
///     std::shared_ptr<nn::Linear> hidden =
///         register_module("hidden", nn::make<nn::Linear>(784, 128));
///     std::shared_ptr<nn::Linear> out = register_module("out", nn::make<nn::Linear>(128, 10));
///     Tensor forward(const Tensor& x) override { return (*out)(relu((*hidden)(x))); }
///   };
///
/// To change the values of a parameter, write into it: `weight.copy_(...)` under no_grad. An
/// assignment `weight = zeros(...)` replaces it by a tensor that the optimizer does not know; the
/// next call of the module or of one of its lists throws ValueError. To tie weights, a leaf of the
/// same shape that requires a gradient may be assigned (`decoder->weight = encoder->weight`) before
/// the optimizer is constructed.
///
/// A module is not thread-safe. Exception: forward in eval mode under no_grad.
class BAREGRAD_API Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The computation of the module. A module with other arguments declares an overload; this one
  /// throws by default.
  virtual Tensor forward(const Tensor& x);
  /// Calls forward. Ops recorded inside have the module's name as label (see autograd::Label).
  Tensor operator()(const Tensor& x);

  /// In registration order under dotted names, the module's own before those of its children. A
  /// parameter that is registered twice (tied weights) is listed once, under its first name.
  [[nodiscard]] NamedTensors named_parameters() const;
  [[nodiscard]] std::vector<Tensor> parameters() const;
  [[nodiscard]] NamedTensors named_buffers() const;
  /// The direct children, in registration order.
  const std::vector<std::pair<std::string, ModulePtr>>& children() const noexcept {
    return children_;
  }
  /// The name in the parent that registered it last; "" without a parent.
  const std::string& name() const noexcept { return name_; }
  /// This module and all below it, each once.
  [[nodiscard]] std::vector<NamedModule> named_modules();
  /// The number of elements of all parameters.
  [[nodiscard]] std::int64_t parameter_count() const;

  /// Parameters and persistent buffers under PyTorch's names. The tensors share memory with the
  /// module and have no history.
  [[nodiscard]] NamedTensors state_dict() const;
  /// Copies values into the module; dtypes of one kind are converted. Throws one ValueError that
  /// names every missing, unexpected and mismatched key, before anything is written. Without
  /// `strict`, missing and unexpected keys are returned instead.
  LoadResult load_state_dict(const NamedTensors& state, bool strict = true);
  /// Replaces a parameter, by dotted name: to tie weights, or to call the module with tensors that
  /// have a history. Shapes must be equal. Throws ValueError or ShapeError. An existing optimizer
  /// still refers to the old tensor.
  void set_parameter(const std::string& name, const Tensor& value);

  /// Training mode (the default) or eval mode, for this module and all below it.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const noexcept { return training_; }

  /// Calls fn on all modules below, then on this one.
  Module& apply(const std::function<void(Module&)>& fn);
  /// Converts floating parameters, with their gradients, and floating buffers to another floating
  /// dtype. Parameters remain the same tensors (see Tensor::set_data): optimizers, averages, hooks
  /// and other handles stay valid, and tied parameters stay tied. Buffers are new tensors. If
  /// memory runs out, nothing is changed.
  Module& to(DType dtype);
  /// The same with all parameters, gradients and buffers on another device. An optimizer moves its
  /// state with the next step.
  Module& to(Device device);
  Module& to(Device device, DType dtype);
  Module& cpu();
  Module& requires_grad_(bool wanted = true);
  /// Removes all gradients.
  void zero_grad();

  // ---- Parts that are not members of a C++ class: of networks that are built at run time, and of
  // ---- modules in other languages. The module owns them.
  /// Like register_parameter and register_buffer, but the tensor may be undefined and is not
  /// changed. The reference is valid until remove(name).
  Tensor& add_parameter(std::string name, Tensor value);
  Tensor& add_buffer(std::string name, Tensor value, bool persistent = true);
  /// Replaces one of the module's own parameters or buffers. The tensor may be undefined. Throws
  /// ValueError for an unknown name.
  void replace_own(const std::string& name, Tensor value);
  /// Adds a child, or replaces an added child of this name.
  void add_module(const std::string& name, ModulePtr module);
  /// Removes an added parameter, buffer or child. False if there is none of this name. Throws
  /// ValueError for one that the class itself registered, because the class still uses it.
  bool remove(const std::string& name);
  /// Whether one of the module's own parameters, buffers or children has this name. The time does
  /// not depend on their number.
  [[nodiscard]] bool has_part(const std::string& name) const;
  /// The module's own, without those of its children, in registration order.
  const std::vector<ModuleTensor>& own_parameters() const noexcept { return parameters_; }
  const std::vector<ModuleTensor>& own_buffers() const noexcept { return buffers_; }
  /// Training or eval mode of this module alone.
  void set_training(bool on) noexcept { training_ = on; }
  /// operator() calls this function instead of forward; an empty function restores forward. For
  /// hooks and for modules whose forward is written in another language.
  using Call = std::function<Tensor(Module& module, const Tensor& x)>;
  void set_call(Call call) { call_ = std::move(call); }
  bool has_call() const noexcept { return static_cast<bool>(call_); }

  /// The nested text of PyTorch, each module with its extra_repr.
  [[nodiscard]] std::string to_string() const;
  /// The name of the class, and the text inside the brackets of to_string.
  virtual std::string type_name() const;
  virtual std::string extra_repr() const;

 protected:
  /// `member` is the Tensor that holds the parameter during the lifetime of the module. An
  /// undefined one, such as the bias of a layer without bias, is not listed. Names are unique and
  /// contain no dot.
  void register_parameter(std::string name, Tensor& member);
  /// State without gradients. It is part of state_dict if `persistent`.
  void register_buffer(std::string name, Tensor& member, bool persistent = true);
  /// Returns its argument, to initialise the member that holds the child.
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    attach(name, module);
    members_.push_back(name);
    return module;
  }
  /// The same for a child that is not a member.
  void attach(const std::string& name, ModulePtr module);

 private:
  struct NamedModuleTensor {
    std::string name;
    Tensor* tensor;
    ModuleTensor* place;
  };
  Module& convert(std::optional<DType> dtype, std::optional<Device> device);

  enum class Which { Parameters, Buffers, State, All };

  /// Throws ValueError if a member was assigned a tensor that would not be trained.
  void check_members() {
    for (ModuleTensor& entry : parameters_) {
      if (!entry.tensor->is_same(entry.registered)) [[unlikely]]
        settle(entry);
    }
  }
  void settle(ModuleTensor& entry) const;
  void check_child(const std::string& name, const ModulePtr& module) const;
  bool remove_tensor(std::vector<ModuleTensor>& entries, const std::string& name);
  void check_name(const std::string& name, const char* who) const;
  /// After a part of this name is added; before one is removed.
  void note_added(const std::string& name) noexcept;
  void note_removed(const std::string& name) noexcept;
  std::vector<NamedModule> walk(bool repeated) const;
  std::vector<NamedModuleTensor> tensors_below(Which which, bool repeated) const;

  std::vector<ModuleTensor> parameters_;
  std::vector<ModuleTensor> buffers_;
  std::vector<std::pair<std::string, ModulePtr>> children_;
  std::vector<std::string> members_;  // names of the children that are members of the class
  std::vector<std::unique_ptr<Tensor>> kept_;
  // The names of all parts if there are many; null otherwise: a few are compared one by one.
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
