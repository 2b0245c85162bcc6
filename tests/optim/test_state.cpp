// Groups, errors, and saved state.
#include "baregrad/error.h"
#include "golden.h"

namespace baregrad {
namespace {

using namespace test;
using optim::AdamW;
using optim::SGD;

TEST(Groups, EachHasItsOwnNumbers) {
  const Tensor a = values(6, -1, DType::Float64);
  const Tensor b = values(6, -1, DType::Float64);
  const Tensor a_alone = values(6, -1, DType::Float64);
  const Tensor b_alone = values(6, -1, DType::Float64);
  SGD both({a}, {.lr = 0.1, .momentum = 0.9});
  both.add_group({b}, {.lr = 0.5, .weight_decay = 0.2});
  SGD first({a_alone}, {.lr = 0.1, .momentum = 0.9});
  SGD second({b_alone}, {.lr = 0.5, .weight_decay = 0.2});
  for (int k = 0; k < 4; ++k) {
    if (k == 2) {
      both.groups()[1].set_lr(0.05);
      second.groups()[0]["lr"] = 0.05;
    }
    for (const Tensor& t : {a, b, a_alone, b_alone}) t.set_grad(values(6, k, DType::Float64));
    both.step();
    first.step();
    second.step();
  }
  EXPECT_TRUE(same_bits(a, a_alone));
  EXPECT_TRUE(same_bits(b, b_alone));
  EXPECT_EQ(both.groups().size(), 2U);
  EXPECT_EQ(both.groups()[1].lr(), 0.05);
  EXPECT_EQ(both.groups()[0]["momentum"], 0.9);
}

TEST(Groups, UnknownSettingsAreNamed) {
  SGD optimizer({values(2, -1, DType::Float32)});
  EXPECT_FALSE(optimizer.groups()[0].has("beta1"));
  EXPECT_TRUE(optimizer.groups()[0].has("nesterov"));
  EXPECT_EQ(error_of<ValueError>([&] { optimizer.groups()[0]["beta1"] = 1; }),
            "SGD: there is no setting 'beta1'; there are lr, momentum, dampening, weight_decay, "
            "nesterov, maximize");
}

TEST(Groups, ParametersThatCannotBeOptimizedAreRefused) {
  const Tensor p = values(4, -1, DType::Float32);
  EXPECT_EQ(error_of<ValueError>([] { SGD o(Tensors{}); }), "SGD: there are no parameters");
  EXPECT_EQ(error_of<ValueError>([&] { SGD o({p, Tensor()}); }), "SGD: parameter 1 is undefined");
  EXPECT_EQ(error_of<DTypeError>([&] { AdamW o({zeros({2}, DType::Int32)}); }),
            "AdamW: parameter 0 is int32[2]; only floating tensors can be optimized");
  EXPECT_EQ(error_of<ValueError>([&] {
              SGD o({p, p});
            }),
            "SGD: parameter 1, float32[4], was given before");
  SGD optimizer({p});
  EXPECT_EQ(error_of<ValueError>([&] { optimizer.add_group({p.detach()}); }),
            "SGD: parameter 0, float32[4], was given before");
  const Tensor q = values(4, -1, DType::Float32);
  EXPECT_EQ(error_of<ValueError>([&] {
              optimizer.add_group({q, p, q});
            }),
            "SGD: parameter 2, float32[4], was given before");
  // Other elements of the same memory, and none at all.
  EXPECT_EQ(error_of<ValueError>([&] {
              optimizer.add_group({q, p});
            }),
            "SGD: parameter 1, float32[4], was given before");
  SGD parts({p.detach()});
  parts.add_group({slice(p, 0, {0, 2}), slice(p, 0, {2, 4}), slice(p, 0, {0, 4, 2})});
  parts.add_group({zeros({0}), zeros({0})});
  EXPECT_EQ(parts.groups().size(), 3U);
  EXPECT_EQ(optimizer.groups().size(), 1U);
  const Tensor made = values(4, -1, DType::Float32).requires_grad_() * 2.0;
  EXPECT_EQ(
      error_of<GradError>([&] { SGD o({made}); }),
      "SGD: parameter 0, float32[4], is the result of multiply; only leaves can be optimized");
  const Tensor wide = zeros({1}, DType::Float32).expand({3});
  EXPECT_EQ(error_of<ValueError>([&] { SGD o({wide}); }),
            "SGD: parameter 0, float32[3] with strides [0], holds some element more than once; "
            "clone it first");
}

TEST(Groups, OptionsOutOfRangeAreRefused) {
  const Tensors p = {values(4, -1, DType::Float32)};
  EXPECT_EQ(error_of<ValueError>([&] { SGD o(p, {.lr = -1}); }), "SGD: lr is -1, not in [0, inf]");
  EXPECT_EQ(error_of<ValueError>([&] { AdamW o(p, {.beta2 = 1}); }),
            "AdamW: beta2 is 1, not in [0, 1)");
  EXPECT_EQ(error_of<ValueError>([&] { optim::Lion o(p, {.lr = std::nan("")}); }),
            "Lion: lr is nan, not in [0, inf]");
  EXPECT_EQ(error_of<ValueError>([&] { SGD o(p, {.nesterov = true}); }),
            "SGD: nesterov needs a momentum and no dampening");
}

TEST(Groups, GradientsAreDroppedOrZeroed) {
  const Tensor p = values(4, -1, DType::Float32);
  const Tensor q = values(4, -1, DType::Float32);
  SGD optimizer({p, q});
  const Tensor g = values(4, 0, DType::Float32);
  p.set_grad(g);
  q.set_grad(Tensor::of<float>({3}).expand({4}));
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_TRUE(p.grad().is_same(g));
  EXPECT_EQ(doubles(g), std::vector<double>(4, 0));
  EXPECT_EQ(doubles(q.grad()), std::vector<double>(4, 0));
  optimizer.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

TEST(State, ContinuesBitForBit) {
  for (const GoldenOptimizer& row : golden_optimizers()) {
    for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
      const auto make = [&] {
        return Tensors{values(70, -1, dtype), values(3, -1, dtype), values(9, -1, dtype)};
      };
      const auto train = [&](const Tensors& params, Optimizer& optimizer, int from, int to) {
        for (int k = from; k < to; ++k) {
          params[0].set_grad(values(70, k, dtype));
          if (k > 2) params[1].set_grad(values(3, k, dtype));  // the last one never has a gradient
          optimizer.step();
        }
      };
      const Tensors whole = make();
      const Made uninterrupted = row.make(whole);
      uninterrupted->groups()[0].set_lr(1.0 / 3);
      train(whole, *uninterrupted, 0, 12);

      const Tensors before = make();
      const Made first = row.make(before);
      first->groups()[0].set_lr(1.0 / 3);
      train(before, *first, 0, 5);
      const State state = first->state();
      Tensors after;
      for (const Tensor& t : before) after.push_back(t.clone());
      const Made second = row.make(after);
      second->load_state(state);
      train(before, *first, 5, 7);  // must not affect the second
      train(after, *second, 5, 12);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        ASSERT_TRUE(same_bits(whole[i], after[i])) << row.name << ' ' << name(dtype) << ' ' << i;
      }
      const State a = uninterrupted->state();
      const State b = second->state();
      EXPECT_EQ(a.values, b.values);
      ASSERT_EQ(a.tensors.size(), b.tensors.size());
      for (std::size_t i = 0; i < a.tensors.size(); ++i) {
        EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
        EXPECT_TRUE(same_bits(a.tensors[i].tensor, b.tensors[i].tensor));
      }
    }
  }
}

TEST(State, SettingsThatChangedSinceTheLastStep) {
  const Tensor p = values(4, -1, DType::Float32);
  SGD optimizer({p});
  p.set_grad(values(4, 0, DType::Float32));
  optimizer.step();
  optimizer.groups()[0]["momentum"] = 0.9;
  optimizer.groups()[0]["dampening"] = 0.5;
  const Tensor q = p.clone();
  SGD other({q});
  other.load_state(optimizer.state());
  for (int k = 1; k < 4; ++k) {
    p.set_grad(values(4, k, DType::Float32));
    q.set_grad(values(4, k, DType::Float32));
    optimizer.step();
    other.step();
  }
  EXPECT_TRUE(same_bits(p, q));
}

TEST(State, EverythingThatDoesNotFitIsListedAndNothingChanges) {
  const Tensor p = values(4, -1, DType::Float32);
  const Tensor q = values(2, -1, DType::Float32);
  AdamW optimizer({p, q}, {.lr = 0.25});
  p.set_grad(values(4, 0, DType::Float32));
  q.set_grad(values(2, 0, DType::Float32));
  optimizer.step();
  const State good = optimizer.state();
  State bad = good;
  bad.tensors[0].tensor = zeros({5}, DType::Float32);
  bad.tensors[1].tensor = zeros({4}, DType::Int64);
  bad.tensors[2].name = "1.exp_average";
  bad.values.erase("group.0.eps");
  bad.values["group.0.lr"] = "fast";
  bad.values["0.step"] = "-3";
  bad.values["extra"] = "1";
  EXPECT_EQ(error_of<ValueError>([&] { optimizer.load_state(bad); }),
            "AdamW.load_state: the state does not fit:\n"
            "  'group.0.lr' is not a number: 'fast'\n"
            "  'group.0.eps' is missing\n"
            "  '0.step' is not a whole number from 0: '-3'\n"
            "  tensor '0.exp_avg' is float32[5], not float32[4]\n"
            "  tensor '0.exp_avg_sq' is int64[4], not float32[4]\n"
            "  tensor '1.exp_avg' is missing: float32[2]\n"
            "  tensor '1.exp_average' is not expected\n"
            "  'extra' is not expected");
  const State now = optimizer.state();
  EXPECT_EQ(now.values, good.values);
  for (std::size_t i = 0; i < good.tensors.size(); ++i) {
    EXPECT_TRUE(same_bits(now.tensors[i].tensor, good.tensors[i].tensor));
  }

  SGD other({p, q});
  const std::string text = error_of<ValueError>([&] { other.load_state(good); });
  EXPECT_NE(text.find("'optimizer' is 'AdamW', not 'SGD'"), std::string::npos) << text;
  State wrong = good;
  wrong.values["group.0.beta1"] = "7";
  EXPECT_EQ(error_of<ValueError>([&] { optimizer.load_state(wrong); }),
            "AdamW.load_state: the state does not fit:\n  group.0.beta1 is 7, not in [0, 1)");
}

}  // namespace
}  // namespace baregrad
