// baregrad._core.optim: the engine's optimizers, clipping and averages. Groups as dicts and what
// else people expect of an optimizer is arranged in baregrad/optim.
#include "baregrad/optim.h"

#include <string_view>

#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "optim_handles.h"
#include "state_dict.h"

namespace baregrad::python {
namespace {

using namespace optim;

template <class T>
struct HandleOf final : OptimizerHandle {
  template <class Options>
  HandleOf(Tensors params, const Options& options) : optimizer(std::move(params), options) {}
  Optimizer& get() noexcept override { return optimizer; }
  T optimizer;
};

/// Values are the members of Options in their order; each is named by an nb::arg.
template <class T, class Options, class... Values, class... Names>
void def_optimizer(nb::module_& m, const char* name, const Names&... names) {
  static_assert(sizeof...(Values) == sizeof...(Names));
  using Handle = HandleOf<T>;
  nb::class_<Handle, OptimizerHandle>(m, name)
      .def(
          "__init__",
          [](Handle* self, Tensors params, Values... values) {
            new (self) Handle(std::move(params), Options{values...});
          },
          nb::arg("params"), names...)
      .def(
          "add_group",
          [](Handle& self, Tensors params, Values... values) {
            exclusively(self,
                        [&] { self.optimizer.add_group(std::move(params), Options{values...}); });
          },
          nb::arg("params"), names...);
}

Group& group_of(Optimizer& optimizer, std::size_t index) {
  if (index >= optimizer.groups().size()) throw nb::index_error("there is no such group");
  return optimizer.groups()[index];
}

void bind_handle(nb::module_& m) {
  nb::class_<OptimizerHandle>(m, "Optimizer", "What the optimizers share.")
      .def("step", [](OptimizerHandle& self) { exclusively(self, [&] { self.get().step(); }); })
      .def(
          "zero_grad",
          [](OptimizerHandle& self, bool set_to_none) {
            exclusively(self, [&] { self.get().zero_grad(set_to_none); });
          },
          nb::arg("set_to_none") = true)
      .def("group_count",
           [](OptimizerHandle& self) {
             return exclusively(self, [&] { return self.get().groups().size(); });
           })
      .def(
          "params",
          [](OptimizerHandle& self, std::size_t group) {
            return exclusively(self, [&] { return group_of(self.get(), group).params(); });
          },
          nb::arg("group"))
      .def(
          "get",
          [](OptimizerHandle& self, std::size_t group, std::string_view name) {
            return exclusively(self,
                               [&] { return std::as_const(group_of(self.get(), group))[name]; });
          },
          nb::arg("group"), nb::arg("name"))
      .def(
          "set",
          [](OptimizerHandle& self, std::size_t group, std::string_view name, double value) {
            exclusively(self, [&] { group_of(self.get(), group)[name] = value; });
          },
          nb::arg("group"), nb::arg("name"), nb::arg("value"))
      .def("state",
           [](OptimizerHandle& self) {
             return dict_of(exclusively(self, [&] { return self.get().state(); }));
           })
      .def(
          "load_state",
          [](OptimizerHandle& self, const StateDict& dict) {
            const State state = state_of(dict, "load_state_dict");
            exclusively(self, [&] { self.get().load_state(state); });
          },
          nb::arg("state"));
}

void bind_optimizers(nb::module_& m) {
  using nb::arg;
  def_optimizer<SGD, SGDOptions, double, double, double, double, bool, bool>(
      m, "SGD", arg("lr"), arg("momentum"), arg("dampening"), arg("weight_decay"), arg("nesterov"),
      arg("maximize"));
  def_optimizer<Adam, AdamOptions, double, double, double, double, double, bool>(
      m, "Adam", arg("lr"), arg("beta1"), arg("beta2"), arg("eps"), arg("weight_decay"),
      arg("maximize"));
  def_optimizer<AdamW, AdamWOptions, double, double, double, double, double, bool>(
      m, "AdamW", arg("lr"), arg("beta1"), arg("beta2"), arg("eps"), arg("weight_decay"),
      arg("maximize"));
  def_optimizer<RMSprop, RMSpropOptions, double, double, double, double, double, bool, bool>(
      m, "RMSprop", arg("lr"), arg("alpha"), arg("eps"), arg("weight_decay"), arg("momentum"),
      arg("centered"), arg("maximize"));
  def_optimizer<Adagrad, AdagradOptions, double, double, double, double, double, bool>(
      m, "Adagrad", arg("lr"), arg("lr_decay"), arg("weight_decay"),
      arg("initial_accumulator_value"), arg("eps"), arg("maximize"));
  def_optimizer<Lion, LionOptions, double, double, double, double, bool>(
      m, "Lion", arg("lr"), arg("beta1"), arg("beta2"), arg("weight_decay"), arg("maximize"));
}

/// As a gradient would say it: float32 unless one of them is double.
Tensor norm_tensor(double norm, const Tensors& params) {
  const bool wide = std::any_of(params.begin(), params.end(),
                                [](const Tensor& t) { return t.dtype() == DType::Float64; });
  return Tensor::scalar(norm, wide ? DType::Float64 : DType::Float32);
}

void bind_clipping(nb::module_& m) {
  m.def(
      "clip_grad_norm",
      [](const Tensors& params, double max_norm, bool error_if_nonfinite) {
        const LockReleased unlocked;
        return norm_tensor(clip_grad_norm_(params, max_norm, error_if_nonfinite), params);
      },
      nb::arg("params"), nb::arg("max_norm"), nb::arg("error_if_nonfinite"));
  m.def(
      "clip_grad_value",
      [](const Tensors& params, double limit) {
        const LockReleased unlocked;
        clip_grad_value_(params, limit);
      },
      nb::arg("params"), nb::arg("clip_value"));
}

struct EMAHandle : Exclusive {
  EMAHandle(Tensors params, double decay) : ema(std::move(params), decay) {}
  EMA ema;
};

void bind_ema(nb::module_& m) {
  nb::class_<EMAHandle>(m, "EMA")
      .def(nb::init<Tensors, double>(), nb::arg("params"), nb::arg("decay"))
      .def_prop_ro("decay", [](const EMAHandle& self) { return self.ema.decay(); })
      .def_prop_ro(
          "updates",
          [](EMAHandle& self) { return exclusively(self, [&] { return self.ema.updates(); }); })
      .def_prop_ro(
          "averages",
          [](EMAHandle& self) { return exclusively(self, [&] { return self.ema.averages(); }); })
      .def("update", [](EMAHandle& self) { exclusively(self, [&] { self.ema.update(); }); })
      .def("copy_to", [](EMAHandle& self) { exclusively(self, [&] { self.ema.copy_to(); }); })
      .def("swap", [](EMAHandle& self) { exclusively(self, [&] { self.ema.swap(); }); })
      .def("state",
           [](EMAHandle& self) {
             return dict_of(exclusively(self, [&] { return self.ema.state(); }));
           })
      .def(
          "load_state",
          [](EMAHandle& self, const StateDict& dict) {
            const State state = state_of(dict, "EMA.load_state_dict");
            exclusively(self, [&] { self.ema.load_state(state); });
          },
          nb::arg("state"));
}

}  // namespace

void bind_optim(nb::module_& m) {
  nb::module_ optim = m.def_submodule("optim", "What baregrad.optim is made of.");
  bind_handle(optim);
  bind_optimizers(optim);
  bind_clipping(optim);
  bind_ema(optim);
  bind_schedules(optim);
}

}  // namespace baregrad::python
