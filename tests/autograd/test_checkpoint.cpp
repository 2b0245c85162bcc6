// checkpoint: the same gradients as a plain run, bit for bit, with less memory.
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "tests/autograd/support.h"
#include "tests/op_table/support.h"

namespace baregrad {
namespace {

using Segment = std::function<Tensors(const Tensors&)>;

Tensors plainly(const Segment& fn, const Tensors& inputs) { return fn(inputs); }
Tensors checkpointed(const Segment& fn, const Tensors& inputs) {
  return autograd::checkpoint(fn, inputs);
}
using Way = Tensors (*)(const Segment&, const Tensors&);

Tensor start(const Dims& shape, std::uint64_t seed) {
  op_table::Rng rng(seed);
  return op_table::sample(rng, DType::Float64, shape, -1, 1).requires_grad_();
}

/// Dropout, a captured parameter, two results.
struct Net {
  Tensor x = start({8, 5}, 1);
  Tensor w = start({5, 5}, 2);
  Tensor b = start({5}, 3);

  Tensors layer(const Tensors& in) const {
    const Tensor keep = bernoulli(in[0].shape(), 0.7, DType::Float64);
    const Tensor h = gelu(matmul(in[0] * keep, w) + b);
    return {h + in[0], sum(h * h)};
  }
  Tensor loss(Way way) const {
    manual_seed(7);
    Tensor h = x * 1.0;
    Tensor extra = sum(w * 0.1);  // the parameter is used outside as well
    for (int i = 0; i < 4; ++i) {
      const Tensors out = way([this](const Tensors& in) { return layer(in); }, {h});
      h = out[0];
      extra = extra + out[1];
    }
    return sum(tanh(h)) + extra * 0.01 + rand({}, DType::Float64);
  }
  std::vector<char> gradients() const {
    std::vector<char> bytes;
    for (const Tensor* t : {&x, &w, &b}) {
      const std::vector<char> more = op_table::bytes_of(t->grad());
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }
};

TEST(Checkpoint, BitsOfThePlainRun) {
  const Net plain;
  const Tensor a = plain.loss(plainly);
  a.backward();
  const Net again;
  const Tensor b = again.loss(checkpointed);
  const Generator::State after = default_generator().state();
  b.backward();
  EXPECT_EQ(after, default_generator().state());  // backward drew no random numbers
  EXPECT_EQ(values(a), values(b));
  EXPECT_TRUE(plain.gradients() == again.gradients());
}

TEST(Checkpoint, OfSeveralInputsOnlySomeOfWhichCount) {
  const auto run = [](Way way) {
    const Tensor x = start({4}, 5);
    const Tensor y = start({4}, 6).detach();
    const Tensor z = start({4}, 7);
    const Tensors out = way(
        [](const Tensors& in) {
          return Tensors{in[0] * in[1], sin(in[2]), in[1] + 1.0};
        },
        {x, y, z});
    EXPECT_FALSE(out[2].requires_grad());
    sum(out[0] * out[2]).backward();
    EXPECT_FALSE(way == plainly && z.grad().defined());
    return values(x.grad());
  };
  EXPECT_EQ(run(plainly), run(checkpointed));
}

TEST(Checkpoint, Nested) {
  const auto run = [](Way way) {
    const Tensor x = start({6}, 8);
    const Tensor w = start({6}, 9);
    const Segment inner = [w](const Tensors& in) { return Tensors{sin(in[0] * w) + in[0]}; };
    const Segment outer = [=](const Tensors& in) {
      const Tensors a = way(inner, {exp(in[0] * 0.5)});
      return way(inner, {a[0] * in[0]});
    };
    sum(way(outer, {way(outer, {x})[0]})[0]).backward();
    return std::pair(values(x.grad()), values(w.grad()));
  };
  EXPECT_EQ(run(plainly), run(checkpointed));
}

TEST(Checkpoint, ThroughGrad) {
  const auto run = [](Way way) {
    const Tensor x = start({6}, 8);
    const Tensor w = start({6}, 9);
    const Tensor h = x * 2.0;
    const Tensor y = way([w](const Tensors& in) { return Tensors{sin(in[0] * w)}; }, {h})[0];
    const Tensors g = autograd::grad({sum(y)}, {h, w, x});
    EXPECT_FALSE(x.grad().defined());
    EXPECT_FALSE(w.grad().defined());
    return std::vector{values(g[0]), values(g[1]), values(g[2])};
  };
  EXPECT_EQ(run(plainly), run(checkpointed));
}

/// Only the gradient of a parameter is requested: the path to the inputs is pruned.
TEST(Checkpoint, ThroughGradOfOneOfThem) {
  const auto run = [](Way way) {
    const Tensor x = start({6}, 8);
    const Tensor w = start({6}, 9);
    const Tensor y = way([w](const Tensors& in) { return Tensors{sin(in[0] * w)}; }, {x * x})[0];
    return values(autograd::grad({sum(y)}, {w})[0]);
  };
  EXPECT_EQ(run(plainly), run(checkpointed));
}

TEST(Checkpoint, GradientsHoldInBothOrders) {
  const Tensor w = Spread(4).draw({3});
  const auto fn = [](const Tensors& in) {
    return autograd::checkpoint(
        [](const Tensors& t) {
          return Tensors{tanh(t[0] * t[1]) + t[0], t[1] * t[1]};
        },
        in);
  };
  Spread spread(3);
  const Tensors inputs = {spread.draw({3}).requires_grad_(), spread.draw({3}).requires_grad_()};
  EXPECT_EQ(autograd::gradcheck(fn, inputs), "");
  EXPECT_EQ(autograd::gradgradcheck(fn, inputs), "");
}

TEST(Checkpoint, AViewOfItsInput) {
  const auto run = [](Way way) {
    const Tensor x = start({6}, 8);
    const Tensor h = x * 3.0;
    const Tensor y = way([](const Tensors& in) { return Tensors{narrow(in[0], 0, 1, 3)}; }, {h})[0];
    sum(y * y).backward();
    return values(x.grad());
  };
  EXPECT_EQ(run(plainly), run(checkpointed));
}

TEST(Checkpoint, AnInputOverwrittenIsNoticed) {
  const Tensor x = start({3}, 1);
  const Tensor h = x * 2.0;
  const Tensor y =
      sum(autograd::checkpoint([](const Tensors& in) { return Tensors{sin(in[0])}; }, {h})[0]);
  add_(h, 1.0);
  EXPECT_THROW(y.backward(), GradError);
}

TEST(Checkpoint, AFunctionThatGivesOtherResultsTheSecondTime) {
  const Tensor x = start({3}, 1);
  int calls = 0;
  const Tensor y = autograd::checkpoint(
      [&](const Tensors& in) {
        return calls++ == 0 ? Tensors{sin(in[0])} : Tensors{sin(in[0]), in[0]};
      },
      {x})[0];
  EXPECT_THROW(sum(y).backward(), GradError);
  EXPECT_THROW(autograd::checkpoint({}, {x}), ValueError);
}

TEST(Checkpoint, NothingToRecord) {
  const Tensor x = start({3}, 1);
  const auto fn = [](const Tensors& in) { return Tensors{in[0] * 2.0}; };
  EXPECT_FALSE(autograd::checkpoint(fn, {x.detach()})[0].requires_grad());
  const no_grad off;
  EXPECT_FALSE(autograd::checkpoint(fn, {x})[0].requires_grad());
}

TEST(Checkpoint, BackwardTwiceWithRetainGraph) {
  const Tensor x = leaf({2});
  const Tensor y =
      autograd::checkpoint([](const Tensors& in) { return Tensors{in[0] * in[0]}; }, {x})[0];
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{8}));
  EXPECT_THROW(y.backward(), GradError);
}

TEST(Checkpoint, KeepsLess) {
  const auto kept = [](Way way) {
    const Tensor x = start({64, 64}, 1);
    const std::int64_t nodes = autograd::live_nodes();
    const std::size_t bytes = current_allocator().stats().live_bytes;
    Tensor h = x;
    for (int i = 0; i < 4; ++i) {
      h = way(
          [](const Tensors& in) {
            Tensor t = in[0];
            for (int k = 0; k < 6; ++k) t = sin(t) * t;
            return Tensors{t};
          },
          {h})[0];
    }
    return std::pair(autograd::live_nodes() - nodes,
                     current_allocator().stats().live_bytes - bytes);
  };
  const auto [plain_nodes, plain_bytes] = kept(plainly);
  const auto [nodes, bytes] = kept(checkpointed);
  EXPECT_EQ(plain_nodes, 4 * 12);
  EXPECT_EQ(nodes, 4);
  // Only the results of the four segments are kept.
  EXPECT_EQ(bytes, 4 * 64 * 64 * sizeof(double));
  EXPECT_GT(plain_bytes, 10 * bytes);
}

TEST(Checkpoint, NothingIsLeftBehind) {
  const std::int64_t nodes = autograd::live_nodes();
  {
    const Net net;
    net.loss(checkpointed).backward();
    const Tensor lost = net.loss(checkpointed);
  }
  EXPECT_EQ(autograd::live_nodes(), nodes);
}

TEST(Checkpoint, UndefinedResultsPassThrough) {
  const Tensor x = start({3}, 1);
  const Tensors made = autograd::checkpoint(
      [](const Tensors& in) {
        return Tensors{Tensor(), in[0] * in[0], Tensor(), in[0] * 3.0};
      },
      {x});
  ASSERT_EQ(made.size(), 4U);
  EXPECT_FALSE(made[0].defined());
  EXPECT_FALSE(made[2].defined());
  sum(made[1] + made[3]).backward();
  const Tensor expected = x.detach() * 2.0 + 3.0;
  for (int i = 0; i < 3; ++i) {
    // The engine accumulates in another order than the formula.
    EXPECT_DOUBLE_EQ(x.grad()[i].item<double>(), expected[i].item<double>());
  }
  const Tensors none = autograd::checkpoint([](const Tensors&) { return Tensors{Tensor()}; }, {x});
  EXPECT_FALSE(none.at(0).defined());
}

}  // namespace
}  // namespace baregrad
