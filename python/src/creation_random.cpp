// Random tensors and generators.
#include <random>
#include <utility>

#include "creation.h"

namespace baregrad::python {
namespace {

using Drawn = Tensor (*)(const Dims&, DType, Generator*, DeviceOption);

/// name(2, 3) and name((2, 3)), drawn from `generator` or from the default one.
void def_drawn(nb::module_& m, const char* name, Drawn draw, const char* doc) {
  const auto call = [draw, name](const Dims& shape, DTypeOption dtype, DeviceArg device,
                                 Generator* generator, bool requires_grad) {
    return with_grad(unlocked(work_of(shape),
                              [&, there = device.in(name)] {
                                return draw(shape, dtype.value_or(kDefaultFloat), generator, there);
                              }),
                     requires_grad, name);
  };
  m.def(
      name,
      [call](const Dims& shape, DTypeOption dtype, DeviceArg device, Generator* generator,
             bool requires_grad) { return call(shape, dtype, device, generator, requires_grad); },
      nb::arg("size"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("generator") = nb::none(), nb::arg("requires_grad") = false, doc);
  m.def(
      name,
      [call, name](const nb::args& sizes, DTypeOption dtype, DeviceArg device, Generator* generator,
                   bool requires_grad) {
        return call(sizes_from(sizes, name), dtype, device, generator, requires_grad);
      },
      nb::arg("sizes"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("generator") = nb::none(), nb::arg("requires_grad") = false,
      nb::sig(sizes_signature(name, "generator: Generator | None = None, ").c_str()));
}

void def_drawn_like(nb::module_& m, const char* name, Drawn draw, const char* doc) {
  m.def(
      name,
      [draw, name](const Tensor& x, DTypeOption dtype, DeviceArg device, Generator* generator,
                   bool requires_grad) {
        const Device there = device.in(name).value_or(x.device());
        const auto drawn = [&] {
          return draw(x.shape(), dtype.value_or(x.dtype()), generator, there);
        };
        return with_grad(unlocked(x.numel(), [&] { return in_name_of(name, drawn); }),
                         requires_grad, name);
      },
      nb::arg(), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("generator") = nb::none(), nb::arg("requires_grad") = false, doc);
}

using TwoNumbers = Tensor (*)(const Dims&, double, double, DType, Generator*, DeviceOption);

/// A distribution with two parameters: name(a, b, size).
void def_distribution(nb::module_& m, const char* name, TwoNumbers draw, const char* first,
                      const char* second, const char* doc) {
  m.def(
      name,
      [draw, name](double a, double b, const Dims& shape, DTypeOption dtype, DeviceArg device,
                   Generator* generator, bool requires_grad) {
        return with_grad(unlocked(work_of(shape),
                                  [&, there = device.in(name)] {
                                    return draw(shape, a, b, dtype.value_or(kDefaultFloat),
                                                generator, there);
                                  }),
                         requires_grad, name);
      },
      nb::arg(first), nb::arg(second), nb::arg("size"), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("generator") = nb::none(), nb::arg("requires_grad") = false, doc);
}

Tensor draw_integers(std::int64_t low, std::int64_t high, const Dims& shape, DTypeOption dtype,
                     DeviceArg device, Generator* generator) {
  return unlocked(work_of(shape), [&, there = device.in("randint")] {
    return randint(low, high, shape, dtype.value_or(DType::Int64), generator, there);
  });
}

Tensor draw_integers_below(std::int64_t high, const Dims& shape, DTypeOption dtype,
                           DeviceArg device, Generator* generator) {
  return draw_integers(0, high, shape, dtype, device, generator);
}

Tensor draw_permutation(std::int64_t n, DTypeOption dtype, DeviceArg device, Generator* generator) {
  return unlocked(n, [&, there = device.in("randperm")] {
    return randperm(n, dtype.value_or(DType::Int64), generator, there);
  });
}

Tensor generator_state(const Generator& generator) {
  const Generator::State state = generator.state();
  return Tensor::of<std::uint64_t>({state.seed, state.position});
}

void set_state(Generator& generator, const Tensor& state) {
  if (state.dtype() != DType::UInt64 || !(state.shape() == Dims{2})) {
    throw ValueError(
        message("set_state: a state is uint64[2], what get_state gave; got ", describe(state)));
  }
  const auto numbers = state.to_vector<std::uint64_t>();
  generator.set_state({numbers[0], numbers[1]});
}

std::uint64_t seed_by_chance(Generator& generator) {
  std::random_device device;
  const std::uint64_t seed = (static_cast<std::uint64_t>(device()) << 32) | device();
  generator.manual_seed(seed);
  return seed;
}

void bind_generator(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", R"(A stream of random numbers: a seed and a position.

>>> g = bg.Generator().manual_seed(7)
>>> bg.randint(0, 10, (3,), generator=g).shape
(3,))")
      .def(nb::init<std::uint64_t>(), nb::arg("seed") = 0)
      .def(
          "manual_seed",
          [](Generator& generator, std::uint64_t seed) -> Generator& {
            generator.manual_seed(seed);
            return generator;
          },
          nb::arg("seed"), nb::rv_policy::none,
          nb::sig("def manual_seed(self, seed: int) -> Generator"),
          "Restarts with this seed; returns the generator.")
      .def("seed", &seed_by_chance, "Starts again with a seed of the system's; gives the seed.")
      .def(
          "initial_seed", [](const Generator& generator) { return generator.state().seed; },
          "The seed it started with.")
      .def("get_state", &generator_state, "Seed and position as uint64[2], for set_state.")
      .def("set_state", &set_state, nb::arg("state"), "Goes on from where get_state stood.")
      .def("__getstate__",
           [](const Generator& generator) {
             const Generator::State state = generator.state();
             return std::pair(state.seed, state.position);
           })
      .def("__setstate__", [](Generator& generator, std::pair<std::uint64_t, std::uint64_t> state) {
        new (&generator) Generator();
        generator.set_state({state.first, state.second});
      });
  m.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
  m.def(
      "manual_seed",
      [](std::uint64_t seed) {
        manual_seed(seed);
        return nb::cast(&default_generator(), nb::rv_policy::reference);
      },
      nb::arg("seed"), nb::sig("def manual_seed(seed: int) -> Generator"),
      R"(Seeds the generator that random functions use when none is given.

>>> _ = bg.manual_seed(0)
>>> x = bg.rand(3)
>>> _ = bg.manual_seed(0)
>>> bg.rand(3).tolist() == x.tolist()
True)");
}

}  // namespace

void bind_random(nb::module_& m) {
  bind_generator(m);
  def_drawn(m, "rand", &rand, R"(Uniform random numbers in [0, 1).

>>> bg.rand(2, 3).shape
(2, 3))");
  def_drawn(m, "randn", &randn, R"(Random numbers of the standard normal distribution.

>>> bg.randn((2, 3), dtype=bg.float64).dtype
baregrad.float64)");
  def_drawn_like(m, "rand_like", &rand, R"(Uniform random numbers in [0, 1) in x's shape and dtype.

>>> bg.rand_like(bg.zeros((2, 2))).shape
(2, 2))");
  def_drawn_like(m, "randn_like", &randn, R"(Standard normal numbers in x's shape and dtype.

>>> bg.randn_like(bg.zeros((2, 2))).shape
(2, 2))");
  def_distribution(m, "uniform", &uniform, "low", "high", R"(Uniform random numbers in [low, high).

>>> bg.uniform(-1, 1, (4,)).shape
(4,))");
  def_distribution(m, "normal", &normal, "mean", "std", R"(Random numbers of a normal distribution.

>>> bg.normal(0, 0.02, (4,)).shape
(4,))");
  m.def("randint", &draw_integers, nb::arg("low"), nb::arg("high"), nb::arg("size"), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("generator") = nb::none(),
        R"(Random integers in [low, high); low is 0 unless given.

>>> bg.randint(3, 4, (2,))
tensor([3, 3]))");
  m.def("randint", &draw_integers_below, nb::arg("high"), nb::arg("size"), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("generator") = nb::none());
  m.def("randperm", &draw_permutation, nb::arg("n"), nb::kw_only(), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::arg("generator") = nb::none(),
        R"(The integers 0 to n-1 in random order.

>>> sorted(bg.randperm(4).tolist())
[0, 1, 2, 3])");
  m.def(
      "bernoulli",
      [](const Tensor& p, Generator* generator) {
        return unlocked(p.numel(), [&] { return bernoulli(p, generator); });
      },
      nb::arg("p"), nb::kw_only(), nb::arg("generator") = nb::none(),
      R"(1 with probability p, else 0. p is a tensor, or a number with a size.

>>> bg.bernoulli(bg.asarray([0.0, 1.0]))
tensor([0., 1.]))");
  m.def(
      "bernoulli",
      [](double p, const Dims& shape, DTypeOption dtype, DeviceArg device, Generator* generator) {
        return unlocked(work_of(shape), [&, there = device.in("bernoulli")] {
          return bernoulli(shape, p, dtype.value_or(kDefaultFloat), generator, there);
        });
      },
      nb::arg("p"), nb::arg("size"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("generator") = nb::none());
}

}  // namespace baregrad::python
