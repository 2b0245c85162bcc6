// Reverse-mode differentiation: recording on and off, gradients by hand, functions with a gradient
// of their own, recomputation, checks. What Tensor itself offers (backward, grad, hooks) is in
// tensor.h; how it works in docs/autograd.md.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad {

namespace autograd {

/// Whether ops on tensors that require a gradient are recorded, in this thread.
BAREGRAD_API bool is_grad_enabled() noexcept;
BAREGRAD_API void set_grad_enabled(bool enabled) noexcept;

/// Recording on or off until the end of the scope.
class BAREGRAD_API GradModeScope {
 public:
  explicit GradModeScope(bool enabled) noexcept : before_(is_grad_enabled()) {
    set_grad_enabled(enabled);
  }
  ~GradModeScope() { set_grad_enabled(before_); }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;

 private:
  bool before_;
};

using Tensors = std::vector<Tensor>;

struct GradOptions {
  std::optional<bool> retain_graph = {};  ///< keep the graph; `create_graph` when not given
  bool create_graph = false;              ///< record the gradients' own computation
  bool allow_unused =
      false;  ///< an input that the outputs do not depend on gets an undefined tensor
};
/// Gradients of the outputs with respect to the inputs, without touching any `.grad`. `gradients`
/// is empty (all outputs are single elements) or has one tensor per output.
BAREGRAD_API Tensors grad(const Tensors& outputs, const Tensors& inputs,
                          const Tensors& gradients = {}, const GradOptions& options = {});
/// Tensor::backward of several outputs at once.
BAREGRAD_API void backward(const Tensors& outputs, const Tensors& gradients = {},
                           const GradOptions& options = {});

/// Nodes of recorded graphs that are alive in this process, leaves not counted.
BAREGRAD_API std::int64_t live_nodes() noexcept;

/// A name that ops recorded in its scope carry, for graphs and messages: "encoder" "layer 3".
class BAREGRAD_API Label {
 public:
  explicit Label(std::string_view name);
  ~Label();
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;

 private:
  const char* before_;
};

/// While one lives, the first op, forward or backward, that makes a NaN or an infinity out of
/// finite numbers throws GradError with its name, its shape and its label. In all threads.
class BAREGRAD_API AnomalyScope {
 public:
  AnomalyScope() noexcept;
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;
};

// ---- Functions with a gradient of their own ----------------------------------------------------

/// What forward leaves for backward. Made by FunctionCall, owned by the graph.
class BAREGRAD_API Context : public std::enable_shared_from_this<Context> {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Inputs and outputs of forward that backward will ask for; checked for overwriting.
  void save_for_backward(Tensors tensors);
  /// In backward: what was saved, connected to its history.
  Tensors saved() const;
  /// Outputs through which no gradient flows.
  void mark_non_differentiable(Tensors outputs);
  /// In backward: is the gradient of forward's i-th tensor argument wanted?
  bool needs_grad(std::size_t tensor_argument) const;

  /// Anything else.
  std::map<std::string, std::any> data;

 private:
  friend class FunctionCall;
  friend class FunctionNode;
  struct State;
  std::unique_ptr<State> state_;
};

/// One call of a function: not for users, who derive from Function.
class BAREGRAD_API FunctionCall {
 public:
  using Backward = Tensors (*)(Context& context, const Tensors& gradients);

  FunctionCall(const char* name, Backward backward);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  Context& context() noexcept { return *context_; }
  template <class T>
  const T& argument(const T& value) {
    if constexpr (std::is_same_v<T, Tensor>) add_input(value);
    return value;
  }
  /// Connects the outputs to the inputs.
  void finish(Tensors& outputs);

 private:
  void add_input(const Tensor& input);

  const char* name_;
  Backward backward_;
  std::shared_ptr<Context> context_;
  Tensors inputs_;
};

/// A differentiable function written as a pair:
///
///   struct Cube : autograd::Function<Cube> {
///     static constexpr const char* kName = "cube";
///     static Tensor forward(autograd::Context& context, const Tensor& x) {
///       context.save_for_backward({x});
///       return x * x * x;
///     }
///     static autograd::Tensors backward(autograd::Context& context, const autograd::Tensors& g) {
///       const Tensor x = context.saved()[0];
///       return {g[0] * (3.0 * x * x)};
///     }
///   };
///   Tensor y = Cube::apply(x);
///
/// forward runs without recording and returns a Tensor or Tensors; backward returns one gradient
/// per Tensor argument of forward (undefined: none) and is itself differentiated where a second
/// derivative is asked for. An output that got no gradient brings zeros.
template <class F>
class Function {
 public:
  template <class... Args>
  static auto apply(const Args&... args) {
    FunctionCall call(F::kName, &F::backward);
    (call.argument(args), ...);
    using Result = decltype(F::forward(call.context(), args...));
    Tensors outputs;
    {
      const GradModeScope off(false);
      if constexpr (std::is_same_v<Result, Tensor>) {
        outputs.push_back(F::forward(call.context(), args...));
      } else {
        outputs = F::forward(call.context(), args...);
      }
    }
    call.finish(outputs);
    if constexpr (std::is_same_v<Result, Tensor>) {
      return Tensor(std::move(outputs[0]));
    } else {
      return outputs;
    }
  }
};

/// fn(inputs), keeping none of what it computes on the way: backward computes it again, with the
/// same random numbers. Gradients have the bits of the plain call. fn may use other tensors that
/// require gradients (parameters), and must do the same each time.
BAREGRAD_API Tensors checkpoint(std::function<Tensors(const Tensors& inputs)> fn,
                                const Tensors& inputs);

// ---- Checks
// --------------------------------------------------------------------------------------

struct GradcheckOptions {
  double rtol = 1e-6;
  double atol = 1e-8;
  double step = 1e-4;  ///< of the central differences, which are extrapolated once
};
/// Compares the gradients of fn with finite differences; "" when they agree, else what differs
/// where. Inputs that require a gradient must be float64.
BAREGRAD_API std::string gradcheck(const std::function<Tensors(const Tensors& inputs)>& fn,
                                   const Tensors& inputs, const GradcheckOptions& options = {});
/// The same for the gradients of the gradients.
BAREGRAD_API std::string gradgradcheck(const std::function<Tensors(const Tensors& inputs)>& fn,
                                       const Tensors& inputs,
                                       const GradcheckOptions& options = {1e-5, 1e-7, 1e-3});

}  // namespace autograd

/// Nothing is recorded in the scope: `const bg::no_grad off;`
class no_grad : public autograd::GradModeScope {
 public:
  no_grad() noexcept : GradModeScope(false) {}
};
/// Recording is on in the scope, whatever surrounds it.
class enable_grad : public autograd::GradModeScope {
 public:
  enable_grad() noexcept : GradModeScope(true) {}
};

}  // namespace baregrad
