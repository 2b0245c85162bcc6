// autograd.Function: a Python class with a forward and a backward, as a node of the graph.
#include <any>
#include <unordered_set>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "bindings.h"
#include "callbacks.h"
#include "casters.h"

namespace baregrad::python {
namespace {

using autograd::Context;
using autograd::Tensors;

/// The `ctx` of forward and backward. The graph owns the context and keeps this object alive, so
/// this object does not own the context.
struct FunctionCtx {
  std::weak_ptr<Context> context;
  nb::tuple needs_input_grad;

  std::shared_ptr<Context> locked(const char* who) const {
    std::shared_ptr<Context> alive = context.lock();
    if (!alive) throw GradError(std::string(who) + ": the graph of this call is gone");
    return alive;
  }
};

/// The graph's record of a call, in Context::data.
struct PythonCall {
  PythonOwner function;
  PythonOwner ctx;
  std::vector<bool> is_tensor;  ///< one entry per argument of forward
};
constexpr const char* kCall = "python";

/// Names of nodes outlive the nodes: one copy of each name, for the life of the process. Accessed
/// under the interpreter's lock.
std::unordered_set<std::string>* g_kept_names = nullptr;
const char* kept_name(const std::string& name) {
  if (g_kept_names == nullptr) g_kept_names = new std::unordered_set<std::string>;
  return g_kept_names->insert(name).first->c_str();
}

[[noreturn]] void throw_wrong_count(nb::handle function, std::size_t got, std::size_t wanted) {
  throw GradError(nb::cast<std::string>(function.attr("__name__")) + ": its backward gave " +
                  std::to_string(got) + " gradients for " + std::to_string(wanted) +
                  " arguments that its forward takes; None stands for those without one");
}

/// Picks the gradients of tensor arguments from the gradients of all arguments.
Tensors gradients_from(nb::handle result, const PythonCall& call) {
  const nb::handle function = call.function.get();
  const Tensors given = result.is_none() ? Tensors(1) : tensors_from(result, "backward");
  if (given.size() != call.is_tensor.size()) {
    throw_wrong_count(function, given.size(), call.is_tensor.size());
  }
  Tensors gradients;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (call.is_tensor[i]) {
      gradients.push_back(given[i]);
    } else if (given[i].defined()) {
      throw GradError(nb::cast<std::string>(function.attr("__name__")) +
                      ": its backward gave a gradient for argument " + std::to_string(i) +
                      ", which is not a tensor");
    }
  }
  return gradients;
}

Tensors call_backward(Context& context, const Tensors& gradients) {
  const LockTaken lock;
  const auto found = context.data.find(kCall);
  if (found == context.data.end()) throw GradError("backward: the graph of this call is gone");
  const auto& call = std::any_cast<const PythonCall&>(found->second);
  const nb::object result =
      call.function.get().attr("backward")(call.ctx.get(), *optional_tuple(gradients));
  return gradients_from(result, call);
}

/// The result of forward with the tensors in it replaced by `outputs`.
nb::object with_outputs(nb::handle result, const Tensors& outputs) {
  if (tensor_in(result.ptr()) != nullptr) return tensor_or_none(outputs[0]);
  nb::list all;
  std::size_t next = 0;
  for (const nb::handle item : elements_of(result)) {
    if (tensor_in(item.ptr()) != nullptr) {
      all.append(tensor_or_none(outputs[next++]));
    } else {
      all.append(item);
    }
  }
  return nb::tuple(all);
}

Tensors tensors_in(nb::handle result, const char* name) {
  Tensors outputs;
  if (const Tensor* one = tensor_in(result.ptr())) {
    outputs.push_back(*one);
  } else if (PyTuple_Check(result.ptr()) != 0 || PyList_Check(result.ptr()) != 0) {
    for (const nb::handle item : elements_of(result)) {
      if (const Tensor* t = tensor_in(item.ptr())) outputs.push_back(*t);
    }
  }
  if (outputs.empty()) {
    nb::raise_type_error(
        "%s: its forward must return a tensor or a tuple with tensors, got an object of type %s",
        name, Py_TYPE(result.ptr())->tp_name);
  }
  return outputs;
}

/// `separate`: setup_context gets ctx, and forward does not.
nb::object apply(nb::object function, bool separate, const nb::args& args) {
  const char* name = kept_name(nb::cast<std::string>(function.attr("__name__")));
  autograd::FunctionCall call(name, &call_backward);
  std::vector<bool> is_tensor;
  nb::list needs;
  for (const nb::handle arg : args) {
    const Tensor* tensor = tensor_in(arg.ptr());
    is_tensor.push_back(tensor != nullptr);
    needs.append(tensor != nullptr && tensor->requires_grad());
    if (tensor != nullptr) call.argument(*tensor);
  }
  Context& context = call.context();
  const nb::object ctx = nb::cast(FunctionCtx{context.weak_from_this(), nb::tuple(needs)});
  nb::object result;
  {
    const autograd::GradModeScope off(false);
    if (separate) {
      result = function.attr("forward")(*args);
    } else {
      result = function.attr("forward")(ctx, *args);
    }
    // The list belongs to the user's function and is read twice: take a copy.
    if (PyList_Check(result.ptr()) != 0) result = elements_of(result);
    if (separate) function.attr("setup_context")(ctx, nb::borrow<nb::tuple>(args), result);
  }
  Tensors outputs = tensors_in(result, name);
  context.data[kCall] =
      PythonCall{PythonOwner(std::move(function)), PythonOwner(ctx), std::move(is_tensor)};
  call.finish(outputs);
  return with_outputs(result, outputs);
}

}  // namespace

std::vector<const PythonOwner*> owners_in(const Context& context) noexcept {
  const auto found = context.data.find(kCall);
  if (found == context.data.end()) return {};
  const auto& call = *std::any_cast<PythonCall>(&found->second);
  return {&call.function, &call.ctx};
}

void drop_owners(Context& context) noexcept {
  const auto found = context.data.extract(kCall);
  static_cast<void>(found);
}

void bind_autograd_function(nb::module_& m) {
  nb::class_<FunctionCtx>(m, "FunctionCtx", nb::dynamic_attr(),
                          "The context that forward fills for backward. Any attribute may be set.")
      .def(
          "save_for_backward",
          [](FunctionCtx& self, const nb::args& tensors) {
            self.locked("save_for_backward")
                ->save_for_backward(tensors_from(tensors, "save_for_backward"));
          },
          nb::sig("def save_for_backward(self, *tensors: Tensor | None) -> None"),
          "Saves tensors for backward, which checks that they were not overwritten.")
      .def_prop_ro(
          "saved_tensors",
          [](FunctionCtx& self) { return optional_tuple(self.locked("saved_tensors")->saved()); },
          nb::sig("def saved_tensors(self) -> tuple[Tensor, ...]"),
          "The tensors given to save_for_backward, with their history.")
      .def(
          "mark_non_differentiable",
          [](FunctionCtx& self, const nb::args& outputs) {
            self.locked("mark_non_differentiable")
                ->mark_non_differentiable(tensors_from(outputs, "mark_non_differentiable"));
          },
          nb::sig("def mark_non_differentiable(self, *outputs: Tensor) -> None"),
          "Outputs through which no gradient flows.")
      .def_prop_ro(
          "needs_input_grad", [](const FunctionCtx& self) { return self.needs_input_grad; },
          nb::sig("def needs_input_grad(self) -> tuple[bool, ...]"),
          "For each argument of forward: whether its gradient is needed.");
  m.def("_apply", &apply,
        nb::sig("def _apply(function: object, separate: bool, /, *args: object) -> object"));
}

}  // namespace baregrad::python
