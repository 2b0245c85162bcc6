// Functions with their own gradient.
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "baregrad/error.h"
#include "tests/autograd/support.h"

namespace baregrad {
namespace {

using autograd::Context;

struct Cube : autograd::Function<Cube> {
  static constexpr const char* kName = "cube";
  static Tensor forward(Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x * x;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    return {g[0] * (3.0 * square(context.saved()[0]))};
  }
};

/// Keeps its result instead of its argument.
struct Exp : autograd::Function<Exp> {
  static constexpr const char* kName = "my_exp";
  static Tensor forward(Context& context, const Tensor& x) {
    const Tensor y = exp(x);
    context.save_for_backward({y});
    return y;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    return {g[0] * context.saved()[0]};
  }
};

/// Non-tensor arguments, two results, no gradient for the undefined one.
struct ScaledPair : autograd::Function<ScaledPair> {
  static constexpr const char* kName = "scaled_pair";
  static Tensors forward(Context& context, const Tensor& x, double by, const Tensor& y) {
    context.data["by"] = by;
    context.save_for_backward({x, y});
    return {x * y * by, x + y};
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const auto by = std::any_cast<double>(context.data.at("by"));
    const Tensors saved = context.saved();
    Tensors out(2);
    if (context.needs_grad(0)) out[0] = g[0] * saved[1] * by + g[1];
    if (context.needs_grad(1)) out[1] = g[0] * saved[0] * by + g[1];
    return out;
  }
};

TEST(Function, ForwardAndBackward) {
  const Tensor x = leaf({1, -2, 3});
  const Tensor y = Cube::apply(x);
  EXPECT_EQ(values(y), (std::vector<double>{1, -8, 27}));
  EXPECT_STREQ(y.grad_fn(), "cube");
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 12, 27}));
}

TEST(Function, GradientsHoldInBothOrders) {
  Spread spread(2);
  const Tensors x = {spread.draw({2, 3}).requires_grad_()};
  const Tensors two = {spread.draw({2, 3}).requires_grad_(), spread.draw({2, 3}).requires_grad_()};
  const auto cube = [](const Tensors& in) { return Tensors{Cube::apply(in[0])}; };
  const auto own_exp = [](const Tensors& in) { return Tensors{Exp::apply(in[0])}; };
  const auto pair = [](const Tensors& in) { return ScaledPair::apply(in[0], 2.5, in[1]); };
  const auto nested = [](const Tensors& in) { return Tensors{Cube::apply(Exp::apply(in[0]))}; };
  EXPECT_EQ(autograd::gradcheck(cube, x), "");
  EXPECT_EQ(autograd::gradgradcheck(cube, x), "");
  EXPECT_EQ(autograd::gradcheck(own_exp, x), "");
  EXPECT_EQ(autograd::gradgradcheck(own_exp, x), "");
  EXPECT_EQ(autograd::gradcheck(pair, two), "");
  EXPECT_EQ(autograd::gradgradcheck(pair, two), "");
  EXPECT_EQ(autograd::gradcheck(nested, x), "");
  EXPECT_EQ(autograd::gradgradcheck(nested, x), "");
}

TEST(Function, ThirdDerivative) {
  const Tensor x = leaf({2});
  Tensor g = Cube::apply(x);
  for (int i = 0; i < 3; ++i) g = autograd::grad({sum(g)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(g), (std::vector<double>{6}));
  Tensor e = Exp::apply(leaf({0}));
  const Tensor at = leaf({0});
  e = Exp::apply(at);
  for (int i = 0; i < 3; ++i) e = autograd::grad({sum(e)}, {at}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(e), (std::vector<double>{1}));
}

TEST(Function, OneOfSeveralResultsIsUsed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = leaf({3, 4});
  sum(ScaledPair::apply(x, 10.0, y)[1]).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));
  x.zero_grad();
  const Tensors both = ScaledPair::apply(x, 10.0, y.detach());
  EXPECT_TRUE(both[0].requires_grad());
  sum(both[0] + both[1] * 100.0).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{130, 140}));
}

TEST(Function, WithoutAnythingToRecord) {
  EXPECT_FALSE(Cube::apply(Tensor::of<double>({2})).requires_grad());
  const Tensor x = leaf({2});
  const no_grad off;
  EXPECT_FALSE(Cube::apply(x).requires_grad());
}

TEST(Function, ASavedArgumentOverwrittenIsNoticed) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 2.0;
  const Tensor y = sum(Cube::apply(h));
  add_(h, 1.0);
  try {
    y.backward();
    FAIL() << "no error";
  } catch (const GradError& e) {
    EXPECT_NE(std::string(e.what()).find("cube"), std::string::npos) << e.what();
  }
}

TEST(Function, ASavedResultOverwrittenIsNoticed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Exp::apply(x);
  const Tensor z = sum(y);
  multiply_(y, 2.0);
  EXPECT_THROW(z.backward(), GradError);
  EXPECT_THROW(sum(y).backward(), GradError);
}

/// Written after the save: later ops see the write, and the saved tensor is not needed.
TEST(Function, AResultMayBeWrittenInto) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Cube::apply(x);
  multiply_(y, 10.0);
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30, 120}));
}

struct Ranked : autograd::Function<Ranked> {
  static constexpr const char* kName = "ranked";
  static Tensors forward(Context& context, const Tensor& x) {
    const Tensor order = argsort(x);
    const Tensor rank = astype(argsort(order), DType::Float64);
    context.mark_non_differentiable({rank});
    return {x * 2.0, rank, order};
  }
  static Tensors backward(Context&, const Tensors& g) { return {g[0] * 2.0}; }
};

TEST(Function, ResultsWithoutAGradient) {
  const Tensor x = leaf({3, 1, 2});
  const Tensors out = Ranked::apply(x);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
  EXPECT_FALSE(out[2].requires_grad());
  sum(out[0] * out[1]).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4, 0, 2}));
}

struct TooMany : autograd::Function<TooMany> {
  static constexpr const char* kName = "too_many";
  static Tensor forward(Context&, const Tensor& x) { return x * 2.0; }
  static Tensors backward(Context&, const Tensors& g) { return {g[0], g[0]}; }
};
struct WrongShape : autograd::Function<WrongShape> {
  static constexpr const char* kName = "wrong_shape";
  static Tensor forward(Context&, const Tensor& x) { return x * 2.0; }
  static Tensors backward(Context&, const Tensors&) { return {zeros({7}, DType::Float64)}; }
};
struct Nothing : autograd::Function<Nothing> {
  static constexpr const char* kName = "nothing";
  static Tensor forward(Context&, const Tensor&) { return {}; }
  static Tensors backward(Context&, const Tensors& g) { return g; }
};

template <class F>
void expect_named_error(const F& fn, const char* name) {
  try {
    fn();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).rfind(name, 0), 0U) << e.what();
  }
}

TEST(Function, WrongGradientsAreRefused) {
  const Tensor x = leaf({1, 2});
  expect_named_error([&] { sum(TooMany::apply(x)).backward(); }, "too_many: ");
  expect_named_error([&] { sum(WrongShape::apply(x)).backward(); }, "wrong_shape: ");
  expect_named_error([&] { Nothing::apply(x); }, "nothing: ");
  EXPECT_FALSE(x.grad().defined());
}

struct Identity : autograd::Function<Identity> {
  static constexpr const char* kName = "identity";
  static Tensor forward(Context&, const Tensor& x) { return x; }
  static Tensors backward(Context&, const Tensors& g) { return {g[0] * -1.0}; }
};

/// A tensor that forward returns unchanged is a new handle: the argument's history stays.
TEST(Function, AnArgumentHandedThrough) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Identity::apply(x);
  EXPECT_TRUE(x.is_leaf());
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{-1, -1}));
}

TEST(Function, BackwardTwiceNeedsRetainGraph) {
  const Tensor x = leaf({2});
  const Tensor y = Cube::apply(x);
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{24}));
  EXPECT_THROW(y.backward(), GradError);
}

TEST(Function, NothingIsKeptAlive) {
  const std::int64_t nodes = autograd::live_nodes();
  const std::size_t bytes = current_allocator().stats().live_bytes;
  {
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = Exp::apply(Cube::apply(x));
    const Tensor g = autograd::grad({sum(y)}, {x}, {}, {.create_graph = true})[0];
    EXPECT_GT(autograd::live_nodes(), nodes);
  }
  EXPECT_EQ(autograd::live_nodes(), nodes);
  EXPECT_EQ(current_allocator().stats().live_bytes, bytes);
}

/// Returns its own memory as a gradient.
struct GivesBorrowed : autograd::Function<GivesBorrowed> {
  static constexpr const char* kName = "gives_borrowed";
  static inline float memory[4];
  static Tensor forward(autograd::Context&, const Tensor& x) { return x * 2.0; }
  static autograd::Tensors backward(autograd::Context&, const autograd::Tensors&) {
    return {Tensor::from_blob(memory, {4}, DType::Float32)};
  }
};

TEST(Function, BorrowedMemoryIsNotAddedTo) {
  std::fill_n(GivesBorrowed::memory, 4, 5.0F);
  const std::vector<float> fives(4, 5.0F);
  const auto now = [] {
    return std::vector<float>(GivesBorrowed::memory, GivesBorrowed::memory + 4);
  };
  const Tensor w = ones({4}).requires_grad_();
  // It is added to a gradient that others hold, ...
  const Tensor x = w * 1.0;
  const Tensor z = w * 1.0;
  const Tensor made = GivesBorrowed::apply(x);
  sum((x + z) + made).backward();
  EXPECT_EQ(now(), fives);
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>(4, 7.0F)));
  // ... arrives first, ...
  w.zero_grad();
  const Tensor y = w * 1.0;
  const Tensor later = y * 3.0;
  sum(GivesBorrowed::apply(y) + later).backward();
  EXPECT_EQ(now(), fives);
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>(4, 8.0F)));
  // ... and goes straight to a leaf, twice.
  w.zero_grad();
  sum(GivesBorrowed::apply(w)).backward();
  sum(GivesBorrowed::apply(w)).backward();
  EXPECT_EQ(now(), fives);
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>(4, 10.0F)));
}

// ---- Containers of tensors ---------------------------------------------------------------------

/// x0 + 2 x1 + 3 x2 ... of all arguments, and a number.
struct Weighted : autograd::Function<Weighted> {
  static constexpr const char* kName = "weighted";
  template <class List>
  static Tensor forward(Context& context, const List& list, double by) {
    Tensor total = zeros({2}, DType::Float64);
    double count = 0;
    for (const Tensor& t : list) total = total + t * (by * ++count);
    context.data["count"] = count;
    context.data["by"] = by;
    return total;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const auto by = std::any_cast<double>(context.data.at("by"));
    Tensors out;
    for (double k = 1; k <= std::any_cast<double>(context.data.at("count")); ++k) {
      const bool wanted = context.needs_grad(static_cast<std::size_t>(k) - 1);
      out.push_back(wanted ? g[0] * (by * k) : Tensor());
    }
    return out;
  }
};

TEST(Function, TakesContainersOfTensors) {
  const Tensor a = leaf({1, 2});
  const Tensor b = leaf({3, 4});
  const Tensor still = Tensor::of<double>({5, 6});
  const auto check = [&](const Tensor& y) {
    ASSERT_STREQ(y.grad_fn(), "weighted");
    a.zero_grad();
    b.zero_grad();
    sum(y).backward();
    EXPECT_EQ(values(a.grad()), (std::vector<double>{10, 10}));
    EXPECT_EQ(values(b.grad()), (std::vector<double>{30, 30}));
    EXPECT_FALSE(still.grad().defined());
  };
  check(Weighted::apply(std::vector<Tensor>{a, still, b}, 10.0));
  check(Weighted::apply(std::array<Tensor, 3>{a, still, b}, 10.0));
  const Tensors list = {a, still, b};
  check(Weighted::apply(list, 10.0));
  check(Weighted::apply(std::span<const Tensor>(list), 10.0));
  EXPECT_FALSE(Weighted::apply(std::vector<Tensor>{still}, 1.0).requires_grad());
  EXPECT_FALSE(Weighted::apply(std::vector<Tensor>{}, 1.0).requires_grad());
  EXPECT_EQ(
      autograd::gradcheck(
          [](const Tensors& in) { return Tensors{Weighted::apply(std::vector<Tensor>(in), 0.5)}; },
          {a, b}),
      "");
}

/// A pair, a map, an optional: tensors in their order in the containers.
struct Nested : autograd::Function<Nested> {
  static constexpr const char* kName = "nested";
  using Map = std::map<std::string, Tensor>;
  static Tensor forward(Context& context, const std::pair<Tensor, int>& pair, const Map& map,
                        const std::optional<Tensor>& maybe) {
    context.data["n"] = 1 + map.size() + 1;
    return pair.first * pair.second + map.at("a") * map.at("b") * (maybe ? *maybe : ones({2}));
  }
  static Tensors backward(Context& context, const Tensors& g) {
    Tensors out(std::any_cast<std::size_t>(context.data.at("n")));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = g[0] * static_cast<double>(i + 1);
    return out;
  }
};

TEST(Function, TakesTensorsInPairsMapsAndOptionals) {
  const Tensor x = leaf({1, 1});
  const Tensor a = leaf({1, 1});
  const Tensor b = leaf({1, 1});
  const Tensor m = leaf({1, 1});
  sum(Nested::apply(std::pair(x, 3), Nested::Map{{"b", b}, {"a", a}}, std::optional(m))).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(a.grad()), (std::vector<double>{2, 2}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{3, 3}));
  EXPECT_EQ(values(m.grad()), (std::vector<double>{4, 4}));
  // An absent tensor takes a place, like an undefined one.
  EXPECT_NO_THROW(
      sum(Nested::apply(std::pair(x, 3), Nested::Map{{"b", b}, {"a", a}}, std::optional<Tensor>()))
          .backward());
}

}  // namespace
}  // namespace baregrad
