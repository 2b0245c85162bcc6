// baregrad._core.optim: the engine's optimizers, clipping and averages. Groups as dicts and the
// rest of PyTorch's interface are in baregrad/optim.
#include "baregrad/optim.h"

#include <string_view>
#include <type_traits>

#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "optim/options.h"
#include "optim_handles.h"
#include "state_dict.h"

namespace baregrad::python {
namespace {

using namespace optim;

template <class T>
struct HandleOf final : OptimizerHandle {
  HandleOf(Tensors params, const typename T::Options& options)
      : optimizer(std::move(params), options) {}
  Optimizer& get() noexcept override { return optimizer; }
  T optimizer;
};

/// The type of the I-th option.
template <class Options, std::size_t I>
using Value = std::conditional_t<kOptionRows<Options>[I].is_switch, bool, double>;

/// Binds one optimizer. Its options are keyword arguments; the attribute `defaults` has their
/// defaults.
template <class T, std::size_t... I>
void def_optimizer(nb::module_& m, std::index_sequence<I...>) {
  using Handle = HandleOf<T>;
  using Options = typename T::Options;
  constexpr const auto& kRows = kOptionRows<Options>;
  static constexpr auto kFrom = [](Value<Options, I>... values) {
    const double numbers[] = {static_cast<double>(values)...};
    return options_of<Options>(numbers);
  };
  nb::dict defaults;
  ((defaults[kRows[I].name] = static_cast<Value<Options, I>>(kRows[I].standard)), ...);
  nb::class_<Handle, OptimizerHandle>(m, Options::kName)
      .def(
          "__init__",
          [](Handle* self, Tensors params, Value<Options, I>... values) {
            new (self) Handle(std::move(params), kFrom(values...));
          },
          nb::arg("params"), nb::arg(kRows[I].name)...)
      .def(
          "add_group",
          [](Handle& self, Tensors params, Value<Options, I>... values) {
            exclusively(self,
                        [&] { self.optimizer.add_group(std::move(params), kFrom(values...)); });
          },
          nb::arg("params"), nb::arg(kRows[I].name)...)
      .attr("defaults") = defaults;
}

template <class... T>
void bind_optimizers(nb::module_& m, OptimizerList<T...>) {
  (def_optimizer<T>(m, std::make_index_sequence<kOptionRows<typename T::Options>.size()>()), ...);
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

/// The norm as a tensor: float32, or float64 if a parameter is float64.
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
  bind_optimizers(optim, AllOptimizers());
  bind_clipping(optim);
  bind_ema(optim);
  bind_schedules(optim);
}

}  // namespace baregrad::python
