// baregrad._core.optim: schedules.
#include <memory>
#include <string>

#include "baregrad/optim.h"
#include "bindings.h"
#include "casters.h"
#include "optim_handles.h"
#include "python_owner.h"
#include "state_dict.h"

namespace baregrad::python {
namespace {

using namespace optim;

/// A schedule. Python keeps its optimizer alive. The curve is used by sequential schedules.
struct Schedule {
  OptimizerHandle* optimizer;
  std::unique_ptr<LRScheduler> scheduler;
  Curve curve;
};

/// Binds a factory. The arguments of the class are those of its curve.
template <class T, class... Values, class... Names>
void def_schedule(nb::module_& m, const char* name, Curve (*make_curve)(Values...),
                  const Names&... names) {
  m.def(
      name,
      [make_curve](OptimizerHandle& optimizer, Values... values) {
        return exclusively(optimizer, [&] {
          return Schedule{&optimizer, std::make_unique<T>(optimizer.get(), values...),
                          make_curve(values...)};
        });
      },
      nb::keep_alive<0, 1>(), nb::arg("optimizer"), names...);
}

/// base * factor(step), where `factor` is a Python function.
Curve curve_of(nb::callable factor) {
  return [owner = PythonOwner(std::move(factor))](std::int64_t step, double base) {
    const LockTaken locked;
    return base * nb::cast<double>(nb::float_(owner.get()(step)));
  };
}

void bind_schedule(nb::module_& m) {
  nb::class_<Schedule>(m, "Schedule")
      .def("step",
           [](Schedule& self) { exclusively(*self.optimizer, [&] { self.scheduler->step(); }); })
      .def_prop_ro("last_step",
                   [](const Schedule& self) {
                     return exclusively(*self.optimizer,
                                        [&] { return self.scheduler->last_step(); });
                   })
      .def("last_lr",
           [](const Schedule& self) {
             return exclusively(*self.optimizer, [&] { return self.scheduler->last_lr(); });
           })
      .def("state",
           [](const Schedule& self) {
             return dict_of(exclusively(*self.optimizer, [&] { return self.scheduler->state(); }));
           })
      .def(
          "load_state",
          [](Schedule& self, const StateDict& dict) {
            const State state = state_of(dict, "load_state_dict");
            exclusively(*self.optimizer, [&] { self.scheduler->load_state(state); });
          },
          nb::arg("state"));
}

void bind_sequence(nb::module_& m) {
  m.def(
      "sequential_lr",
      [](OptimizerHandle& optimizer, const std::vector<const Schedule*>& schedules,
         const std::vector<std::int64_t>& milestones) {
        std::vector<Curve> curves;
        for (const Schedule* schedule : schedules) curves.push_back(schedule->curve);
        return exclusively(optimizer, [&] {
          return Schedule{&optimizer,
                          std::make_unique<SequentialLR>(optimizer.get(), curves, milestones),
                          sequential_curve(curves, milestones)};
        });
      },
      nb::keep_alive<0, 1>(), nb::arg("optimizer"), nb::arg("schedules"), nb::arg("milestones"));
  m.def(
      "lambda_lr",
      [](OptimizerHandle& optimizer, nb::callable factor) {
        const Curve curve = curve_of(std::move(factor));
        return exclusively(optimizer, [&] {
          return Schedule{&optimizer, std::make_unique<LRScheduler>(optimizer.get(), curve), curve};
        });
      },
      nb::keep_alive<0, 1>(), nb::arg("optimizer"), nb::arg("factor"));
}

void bind_one_cycle(nb::module_& m) {
  m.def(
      "one_cycle_lr",
      [](OptimizerHandle& optimizer, std::vector<double> max_lr, std::int64_t total_steps,
         double pct_start, bool linear, bool cycle_momentum, double base_momentum,
         double max_momentum, double div_factor, double final_div_factor, bool three_phase) {
        const OneCycleOptions options{std::move(max_lr), total_steps,   pct_start,    linear,
                                      cycle_momentum,    base_momentum, max_momentum, div_factor,
                                      final_div_factor,  three_phase};
        return exclusively(optimizer, [&] {
          return Schedule{&optimizer, std::make_unique<OneCycleLR>(optimizer.get(), options), {}};
        });
      },
      nb::keep_alive<0, 1>(), nb::arg("optimizer"), nb::arg("max_lr"), nb::arg("total_steps"),
      nb::arg("pct_start"), nb::arg("linear"), nb::arg("cycle_momentum"), nb::arg("base_momentum"),
      nb::arg("max_momentum"), nb::arg("div_factor"), nb::arg("final_div_factor"),
      nb::arg("three_phase"));
}

struct Plateau {
  OptimizerHandle* optimizer;
  ReduceLROnPlateau scheduler;
};

void bind_plateau(nb::module_& m) {
  nb::class_<Plateau>(m, "ReduceLROnPlateau")
      .def(
          "__init__",
          [](Plateau* self, OptimizerHandle& optimizer, bool maximize, double factor,
             std::int64_t patience, double threshold, bool relative, std::int64_t cooldown,
             double min_lr, double eps) {
            const PlateauOptions options{maximize, factor,   patience, threshold,
                                         relative, cooldown, min_lr,   eps};
            new (self) Plateau{&optimizer, ReduceLROnPlateau(optimizer.get(), options)};
          },
          nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("maximize"), nb::arg("factor"),
          nb::arg("patience"), nb::arg("threshold"), nb::arg("relative"), nb::arg("cooldown"),
          nb::arg("min_lr"), nb::arg("eps"))
      .def(
          "step",
          [](Plateau& self, double metric) {
            exclusively(*self.optimizer, [&] { self.scheduler.step(metric); });
          },
          nb::arg("metric"))
      .def_prop_ro("best", [](const Plateau& self) { return self.scheduler.best(); })
      .def("last_lr",
           [](const Plateau& self) {
             return exclusively(*self.optimizer, [&] { return self.scheduler.last_lr(); });
           })
      .def("state",
           [](const Plateau& self) {
             return dict_of(exclusively(*self.optimizer, [&] { return self.scheduler.state(); }));
           })
      .def(
          "load_state",
          [](Plateau& self, const StateDict& dict) {
            const State state = state_of(dict, "load_state_dict");
            exclusively(*self.optimizer, [&] { self.scheduler.load_state(state); });
          },
          nb::arg("state"));
}

}  // namespace

void bind_schedules(nb::module_& m) {
  using nb::arg;
  bind_schedule(m);
  def_schedule<StepLR>(m, "step_lr", &step_curve, arg("step_size"), arg("gamma"));
  def_schedule<MultiStepLR>(m, "multi_step_lr", &multi_step_curve, arg("milestones"), arg("gamma"));
  def_schedule<ExponentialLR>(m, "exponential_lr", &exponential_curve, arg("gamma"));
  def_schedule<CosineAnnealingLR>(m, "cosine_annealing_lr", &cosine_curve, arg("period"),
                                  arg("eta_min"));
  def_schedule<CosineAnnealingWarmRestarts>(m, "cosine_annealing_warm_restarts",
                                            &cosine_restarts_curve, arg("period"), arg("factor"),
                                            arg("eta_min"));
  def_schedule<LinearLR>(m, "linear_lr", &linear_curve, arg("start"), arg("end"), arg("steps"));
  bind_sequence(m);
  bind_one_cycle(m);
  bind_plateau(m);
}

}  // namespace baregrad::python
