// baregrad.graph: recorded graphs as pictures and tables.
#include "baregrad/graph.h"

#include "baregrad/error.h"
#include "bindings.h"
#include "callbacks.h"
#include "casters.h"

namespace baregrad::python {
namespace {

using graph::GradientRecorder;

/// Names of tensors: a dict, or pairs as returned by named_parameters().
graph::Names names_from(nb::handle object, const char* who) {
  graph::Names names;
  if (object.is_none()) return names;
  if (PyDict_Check(object.ptr()) != 0) {
    for (const auto& [name, tensor] : entries_of(object)) {
      names.emplace_back(text_of(name), tensor_or_undefined(tensor, who));
    }
    return names;
  }
  for (const nb::handle pair : elements_of(object)) {
    const nb::tuple both = elements_of(pair);
    if (both.size() != 2) nb::raise_type_error("%s: names are pairs of a name and a tensor", who);
    names.emplace_back(text_of(both[0]), tensor_or_undefined(both[1], who));
  }
  return names;
}

std::string to_dot(nb::handle root, nb::handle names, const GradientRecorder* gradients,
                   double vanishing, double exploding, std::int64_t max_nodes) {
  return graph::to_dot(tensors_from(root, "to_dot"), {.names = names_from(names, "to_dot"),
                                                      .gradients = gradients,
                                                      .vanishing = vanishing,
                                                      .exploding = exploding,
                                                      .max_nodes = max_nodes});
}

std::string summary(nb::handle root, nb::handle names, std::int64_t max_nodes) {
  return graph::summary(tensors_from(root, "summary"),
                        {.names = names_from(names, "summary"), .max_nodes = max_nodes});
}

/// A context manager that records between enter and exit. The records can be read afterwards.
class Recorder {
 public:
  void enter() { recorder_ = std::make_unique<GradientRecorder>(); }
  void exit() {
    if (recorder_) recorder_->stop();
  }
  GradientRecorder& get(const char* who) const {
    if (!recorder_) {
      throw ValueError(std::string(who) +
                       ": this GradientRecorder was never entered; use it as "
                       "`with GradientRecorder() as gradients:`");
    }
    return *recorder_;
  }

 private:
  std::unique_ptr<GradientRecorder> recorder_;
};

void bind_recorder(nb::module_& m) {
  nb::class_<Recorder>(m, "GradientRecorder",
                       "Keeps the Euclidean norm of every gradient that a backward in its scope "
                       "computes, in any thread.\n\n"
                       ">>> x = bg.tensor([3.0, 4.0], requires_grad=True)\n"
                       ">>> y = bg.sum(x * x) / 2\n"
                       ">>> with bg.graph.GradientRecorder() as gradients:\n"
                       "...     y.backward()\n"
                       ">>> gradients.norm(x)\n"
                       "5.0")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::pointer_and_handle<Recorder> self) {
            self.p->enter();
            return nb::borrow(self.h);
          },
          nb::sig("def __enter__(self) -> GradientRecorder"))
      .def(
          "__exit__", [](Recorder& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def(
          "norm", [](const Recorder& self, const Tensor& t) { return self.get("norm").norm(t); },
          nb::arg("tensor"), "Norm of the gradient of a tensor, None when none came.")
      .def("__len__", [](const Recorder& self) { return self.get("len").size(); })
      .def(
          "clear", [](const Recorder& self) { self.get("clear").clear(); }, "Forgets all norms.");
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::module_ sub = m.def_submodule("graph");
  bind_recorder(sub);
  const graph::DotOptions dot;
  sub.def(
      "to_dot",
      [](nb::handle root, nb::handle names, const Recorder* gradients, double vanishing,
         double exploding, std::int64_t max_nodes) {
        return to_dot(root, names, gradients != nullptr ? &gradients->get("to_dot") : nullptr,
                      vanishing, exploding, max_nodes);
      },
      nb::arg("root"), nb::arg("names") = nb::none(), nb::arg("gradients") = nb::none(),
      nb::kw_only(), nb::arg("vanishing") = dot.vanishing, nb::arg("exploding") = dot.exploding,
      nb::arg("max_nodes") = dot.max_nodes,
      nb::sig("def to_dot(root: Tensor | Sequence[Tensor], names: Mapping[str, Tensor] | "
              "Iterable[tuple[str, Tensor]] | None = None, gradients: GradientRecorder | None = "
              "None, *, vanishing: float = 1e-07, exploding: float = 1000.0, max_nodes: int = "
              "2000) -> str"),
      "The graph behind a tensor in Graphviz's language.\n\n"
      ">>> x = bg.tensor(2.0, requires_grad=True)\n"
      ">>> bg.graph.to_dot(x * x, {\"x\": x}).startswith(\"digraph\")\n"
      "True");
  sub.def("summary", &summary, nb::arg("root"), nb::arg("names") = nb::none(), nb::kw_only(),
          nb::arg("max_nodes") = graph::SummaryOptions().max_nodes,
          nb::sig("def summary(root: Tensor | Sequence[Tensor], names: Mapping[str, Tensor] | "
                  "Iterable[tuple[str, Tensor]] | None = None, *, max_nodes: int = 200) -> str"),
          R"(The graph behind a tensor as a table: one row per op, and totals.

>>> x = bg.tensor(2.0, requires_grad=True)
>>> print(bg.graph.summary(x * x, {"x": x}))
node  op        shape  dtype    saved  inputs
---------------------------------------------
#0    leaf "x"  []     float32
#1    multiply  []     float32    8 B  #0, #0
1 op, 1 leaf with 1 parameter, 4 B kept for backward)");
}

}  // namespace baregrad::python
