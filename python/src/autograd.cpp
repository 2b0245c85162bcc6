// baregrad.autograd: recording, gradients, checkpointing, gradient checks. Functions with their own
// gradient are in autograd_function.cpp.
#include "baregrad/autograd.h"

#include "autograd/owned.h"
#include "bindings.h"
#include "call.h"
#include "callbacks.h"
#include "casters.h"
#include "scope_manager.h"

namespace baregrad::python {
namespace {

using autograd::GradcheckOptions;
using autograd::GradOptions;
using autograd::Tensors;

nb::tuple grad(nb::handle outputs, nb::handle inputs, nb::handle grad_outputs,
               std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  const Tensors of = tensors_from(outputs, "grad");
  const Tensors by = tensors_from(inputs, "grad");
  const Tensors seeds = tensors_from(grad_outputs, "grad");
  Tensors found;
  {
    const LockReleased release;
    found = autograd::grad(of, by, seeds, {retain_graph, create_graph, allow_unused});
  }
  return optional_tuple(found);
}

void backward(nb::handle tensors, nb::handle grad_tensors, std::optional<bool> retain_graph,
              bool create_graph) {
  const Tensors of = tensors_from(tensors, "backward");
  const Tensors seeds = tensors_from(grad_tensors, "backward");
  const LockReleased release;
  autograd::backward(of, seeds, {retain_graph, create_graph});
}

using Check = std::string (*)(const std::function<Tensors(const Tensors&)>&, const Tensors&,
                              const GradcheckOptions&);

void def_check(nb::module_& m, const char* name, Check check, const GradcheckOptions& defaults,
               const char* doc) {
  m.def(
      name,
      [check, name](nb::object fn, nb::handle inputs, double eps, double atol, double rtol,
                    bool raise_exception) {
        const std::string found = check(python_function(std::move(fn), name),
                                        tensors_from(inputs, name), {rtol, atol, eps});
        if (!found.empty() && raise_exception) throw GradError(found);
        return found.empty();
      },
      nb::arg("fn"), nb::arg("inputs"), nb::kw_only(), nb::arg("eps") = defaults.step,
      nb::arg("atol") = defaults.atol, nb::arg("rtol") = defaults.rtol,
      nb::arg("raise_exception") = true, doc);
}

void bind_gradients(nb::module_& m) {
  m.def("grad", &grad, nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(),
        nb::arg("retain_graph") = nb::none(), nb::arg("create_graph") = false,
        nb::arg("allow_unused") = false,
        nb::sig("def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], "
                "grad_outputs: Tensor | Sequence[Tensor | None] | None = None, "
                "retain_graph: bool | None = None, create_graph: bool = False, "
                "allow_unused: bool = False) -> tuple[Tensor, ...]"),
        "Gradients of outputs with respect to inputs, without touching any `.grad`.\n\n"
        "An input that the outputs do not depend on is an error, or None with allow_unused.\n\n"
        ">>> x = bg.tensor([1.0, 2.0], requires_grad=True)\n"
        ">>> bg.autograd.grad(bg.sum(x * x), x)\n"
        "(tensor([2., 4.]),)");
  m.def("backward", &backward, nb::arg("tensors"), nb::arg("grad_tensors") = nb::none(),
        nb::arg("retain_graph") = nb::none(), nb::arg("create_graph") = false,
        nb::sig("def backward(tensors: Tensor | Sequence[Tensor], "
                "grad_tensors: Tensor | Sequence[Tensor | None] | None = None, "
                "retain_graph: bool | None = None, create_graph: bool = False) -> None"),
        "Tensor.backward of several tensors at once.\n\n"
        ">>> x = bg.tensor([1.0, 2.0], requires_grad=True)\n"
        ">>> bg.autograd.backward([bg.sum(x * x), bg.sum(x)])\n"
        ">>> x.grad\n"
        "tensor([3., 5.])");
  m.def("_keeps", [](const Tensors& tensors) {
    for (const Tensor& t : tensors) autograd::add_visible_handle(t);
  });
  m.def("live_nodes", &autograd::live_nodes,
        "The number of live graph nodes in this process, without leaves.\n\n"
        ">>> before = bg.autograd.live_nodes()\n"
        ">>> y = bg.tensor(2.0, requires_grad=True) * 3\n"
        ">>> bg.autograd.live_nodes() - before\n"
        "1");
}

void bind_checks(nb::module_& m) {
  def_check(m, "gradcheck", &autograd::gradcheck, {},
            "Compares the gradients of fn(*inputs) with finite differences; float64 inputs.\n\n"
            "Raises RuntimeError that describes the difference, or returns False.\n\n"
            ">>> x = bg.tensor([0.5, 1.5], dtype=bg.float64, requires_grad=True)\n"
            ">>> bg.autograd.gradcheck(bg.sin, x)\n"
            "True");
  def_check(m, "gradgradcheck", &autograd::gradgradcheck, {1e-5, 1e-7, 1e-3},
            "gradcheck of the gradients' own gradients.\n\n"
            ">>> x = bg.tensor([0.5, 1.5], dtype=bg.float64, requires_grad=True)\n"
            ">>> bg.autograd.gradgradcheck(bg.sin, x)\n"
            "True");
  m.def("_checkpoint", [](nb::object fn, const Tensors& inputs) {
    return optional_tuple(
        autograd::checkpoint(python_function(std::move(fn), "checkpoint"), inputs));
  });
}

void bind_scopes(nb::module_& m) {
  using Label = ScopeManager<autograd::Label, std::string>;
  nb::class_<Label> label(m, "label",
                          "A name that ops recorded in its scope carry, for graphs and messages."
                          "\n\n"
                          ">>> x = bg.tensor(2.0, requires_grad=True)\n"
                          ">>> with bg.autograd.label(\"square\"):\n"
                          "...     y = x * x\n"
                          ">>> \"square\" in bg.graph.to_dot(y)\n"
                          "True");
  label.def(nb::init<std::string>(), nb::arg("name"));
  def_context_manager(label);

  using Anomaly = ScopeManager<autograd::AnomalyScope>;
  nb::class_<Anomaly> anomaly(m, "detect_anomaly",
                              "In its scope, the first op, forward or backward, that makes a NaN "
                              "or an infinity out of finite numbers raises RuntimeError.\n\n"
                              ">>> with bg.autograd.detect_anomaly():\n"
                              "...     bg.log(bg.tensor(0.0))\n"
                              "Traceback (most recent call last):\n"
                              "...\n"
                              "RuntimeError: anomaly: log made a NaN or an infinity in its result "
                              "float32[] out of float32[]");
  anomaly.def(nb::init<>());
  def_context_manager(anomaly);
}

}  // namespace

void bind_autograd(nb::module_& m) {
  nb::module_ sub = m.def_submodule("autograd");
  sub.def("is_grad_enabled", &autograd::is_grad_enabled,
          "Whether ops on tensors that require a gradient are recorded, in this thread.\n\n"
          ">>> bg.is_grad_enabled()\n"
          "True");
  sub.def("_set_grad_enabled", &autograd::set_grad_enabled);
  bind_gradients(sub);
  bind_checks(sub);
  bind_scopes(sub);
  bind_autograd_function(sub);
}

}  // namespace baregrad::python
