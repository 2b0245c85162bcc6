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
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad {

class Operand;

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
}  // namespace detail

namespace autograd {

/// Whether ops on tensors that require a gradient are recorded, in this thread.
[[nodiscard]] BAREGRAD_API bool is_grad_enabled() noexcept;
BAREGRAD_API void set_grad_enabled(bool enabled) noexcept;

/// Recording on or off until the end of the scope.
class [[nodiscard]] BAREGRAD_API GradModeScope {
 public:
  [[nodiscard]] explicit GradModeScope(bool enabled) noexcept : before_(is_grad_enabled()) {
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
[[nodiscard]] BAREGRAD_API Tensors grad(const Tensors& outputs, const Tensors& inputs,
                                        const Tensors& gradients = {},
                                        const GradOptions& options = {});
/// Tensor::backward of several outputs at once.
BAREGRAD_API void backward(const Tensors& outputs, const Tensors& gradients = {},
                           const GradOptions& options = {});

/// Nodes of recorded graphs that are alive in this process, leaves not counted.
[[nodiscard]] BAREGRAD_API std::int64_t live_nodes() noexcept;

/// A name that ops recorded in its scope carry, for graphs and messages: "encoder" "layer 3".
class [[nodiscard]] BAREGRAD_API Label {
 public:
  [[nodiscard]] explicit Label(std::string_view name);
  ~Label();
  Label(const Label&) = delete;
  Label& operator=(const Label&) = delete;

 private:
  const char* before_;
};

/// While one lives, the first op, forward or backward, that makes a NaN or an infinity out of
/// finite numbers throws GradError with its name, its shape and its label. In all threads.
class [[nodiscard]] BAREGRAD_API AnomalyScope {
 public:
  [[nodiscard]] AnomalyScope() noexcept;
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
  [[nodiscard]] Tensors saved() const;
  /// Outputs through which no gradient flows.
  void mark_non_differentiable(Tensors outputs);
  /// In backward: is the gradient of the i-th tensor that forward was given wanted? Tensors in
  /// containers count one by one.
  [[nodiscard]] bool needs_grad(std::size_t tensor_argument) const;

  /// Anything else.
  std::map<std::string, std::any> data;

 private:
  friend class FunctionCall;
  friend class FunctionNode;
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether no object of the type can hold a tensor. What can be copied byte by byte cannot. Make it
/// true for a type of your own that has other members and no tensor among them, and Function::apply
/// takes it as an argument:
///
///   template <>
///   inline constexpr bool baregrad::autograd::holds_no_tensor<Options> = true;
template <class T>
inline constexpr bool holds_no_tensor = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;
template <>
inline constexpr bool holds_no_tensor<Dims> = true;
template <>
inline constexpr bool holds_no_tensor<Layout> = true;
template <class T>
inline constexpr bool holds_no_tensor<T*> = !std::is_base_of_v<Tensor, std::remove_cv_t<T>>;
template <class T>
inline constexpr bool holds_no_tensor<std::reference_wrapper<T>> = false;
template <>
inline constexpr bool holds_no_tensor<Operand> = false;

/// One call of a function: not for users, who derive from Function.
class BAREGRAD_API FunctionCall {
 public:
  using Backward = Tensors (*)(Context& context, const Tensors& gradients);

  FunctionCall(const char* name, Backward backward);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  Context& context() noexcept { return *context_; }
  /// Notes the tensors in an argument: the tensor itself, or those in a container, an optional, a
  /// pair or a tuple, one after the other. A type that may hide others does not compile.
  template <class T>
  void argument(const T& value) {
    if constexpr (std::is_base_of_v<Tensor, T>) {
      add_input(value);
    } else if constexpr (baregrad::detail::is_optional<T>) {
      using Inside = typename T::value_type;
      if constexpr (std::is_base_of_v<Tensor, Inside>) {
        add_input(value ? *value : Tensor());
      } else if constexpr (!holds_no_tensor<Inside>) {
        if (value) argument(*value);
      }
    } else if constexpr (std::ranges::input_range<const T>) {
      using Element = std::remove_cvref_t<std::ranges::range_reference_t<const T>>;
      static_assert(!std::is_same_v<Element, T> || holds_no_tensor<T>,
                    "Function::apply: a range of itself; say holds_no_tensor if that is so");
      if constexpr (!holds_no_tensor<Element>) {
        for (const auto& element : value) this->argument(element);
      }
    } else if constexpr (baregrad::detail::TupleLike<T>) {
      std::apply([this](const auto&... each) { (this->argument(each), ...); }, value);
    } else {
      static_assert(
          holds_no_tensor<T>,
          "Function::apply: tensors inside this argument would get no gradient. Pass them "
          "as arguments or in a container; if it holds none, say so by holds_no_tensor");
    }
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
/// per tensor that forward was given (undefined: none), those in containers one by one and in
/// order, and is itself differentiated where a second derivative is asked for. An output that got
/// no gradient brings zeros. Arguments are tensors, containers of tensors, and what holds none.
template <class F>
class Function {
 public:
  template <class... Args>
  [[nodiscard]] static auto apply(const Args&... args) {
    FunctionCall call(F::kName, &F::backward);
    (call.argument(args), ...);
    using Result = decltype(F::forward(call.context(), args...));
    static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, Tensors>,
                  "Function: forward returns a Tensor or a std::vector<Tensor>");
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
[[nodiscard]] BAREGRAD_API Tensors checkpoint(std::function<Tensors(const Tensors& inputs)> fn,
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
[[nodiscard]] BAREGRAD_API std::string gradcheck(
    const std::function<Tensors(const Tensors& inputs)>& fn, const Tensors& inputs,
    const GradcheckOptions& options = {});
/// The same for the gradients of the gradients.
[[nodiscard]] BAREGRAD_API std::string gradgradcheck(
    const std::function<Tensors(const Tensors& inputs)>& fn, const Tensors& inputs,
    const GradcheckOptions& options = {1e-5, 1e-7, 1e-3});

}  // namespace autograd

/// Nothing is recorded in the scope: `const bg::no_grad off;`
class [[nodiscard]] no_grad : public autograd::GradModeScope {
 public:
  [[nodiscard]] no_grad() noexcept : GradModeScope(false) {}
};
/// Recording is on in the scope, whatever surrounds it.
class [[nodiscard]] enable_grad : public autograd::GradModeScope {
 public:
  [[nodiscard]] enable_grad() noexcept : GradModeScope(true) {}
};

}  // namespace baregrad
