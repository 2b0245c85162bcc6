// Cases that golden.txt cannot contain: randomness, errors, empty sizes.
#include <cmath>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

using nn::make;

TEST(Dropout, KeepsAShareAndScalesIt) {
  nn::Dropout layer(0.25);
  const Tensor x = full({200, 200}, 3.0).requires_grad_();
  const Tensor y = layer(x);
  const double dropped = count_nonzero(y == 0.0).item<double>() / 40000;
  EXPECT_NEAR(dropped, 0.25, 0.015);
  EXPECT_TRUE(near(amax(y), Tensor::scalar(4.0), 1e-6, 0));
  EXPECT_NEAR(mean(y).item<double>(), 3.0, 0.05);
  // The gradient is zero where the value was dropped.
  y.backward(ones_like(y));
  EXPECT_TRUE(near(x.grad() * 3.0, y, 1e-6, 0));
}

TEST(Dropout, IsNothingInEvalAndAtZero) {
  nn::Dropout layer(0.5);
  layer.eval();
  const Tensor x = rand({3, 3});
  EXPECT_TRUE(layer(x).is_same(x));
  EXPECT_TRUE(nn::dropout(x, 0.0).is_same(x));
  EXPECT_TRUE(near(nn::dropout(x, 1.0), zeros({3, 3}), 0, 0));
}

TEST(Dropout, GeneratorRepeatsAndErrors) {
  Generator a(3);
  Generator b(3);
  const Tensor x = ones({50});
  EXPECT_TRUE(near(nn::dropout(x, 0.5, true, &a), nn::dropout(x, 0.5, true, &b), 0, 0));
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::Dropout(1.5); }), "Dropout: ");
  message_of<ValueError>([] { nn::Dropout(std::nan("")); });
  EXPECT_CONTAINS(message_of<DTypeError>([] { nn::dropout(ones({2}, int64)); }), "int64[2]");
}

TEST(Linear, FusedActivationsAreThePlainOnes) {
  const Tensor x = randn({5, 4}, float64);
  const std::pair<Activation, Tensor (*)(const Tensor&)> activations[] = {
      {Activation::Relu, relu},
      {Activation::Gelu, gelu},
      {Activation::GeluTanh, gelu_tanh},
      {Activation::Silu, silu}};
  for (const auto& [activation, fn] : activations) {
    nn::Linear layer(4, 3, true, activation);
    layer.to(float64);
    EXPECT_TRUE(near(layer(x), fn(linear(x, layer.weight, layer.bias)), 1e-12, 1e-14));
  }
}

TEST(Linear, SizesOfNothingAndErrors) {
  nn::Linear none(0, 3);
  EXPECT_EQ(none(ones({2, 0})).shape(), (Dims{2, 3}));
  nn::Linear layer(4, 3);
  EXPECT_EQ(layer(ones({0, 4})).shape(), (Dims{0, 3}));
  EXPECT_CONTAINS(message_of<ShapeError>([&] { layer(ones({2, 5})); }), "linear");
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::Linear(-1, 3); }), "Linear: in_features");
  EXPECT_THROW(nn::Linear(std::int64_t{1} << 40, std::int64_t{1} << 40), ShapeError);
}

TEST(Embedding, ANegativePaddingIndexCountsFromTheEnd) {
  const Tensor indices = Tensor::of<std::int64_t>({4, 0});
  for (const std::int64_t padding : {-1, 4}) {
    const Tensor weight = ones({5, 2}).requires_grad_();
    sum(nn::embedding(indices, weight, padding)).backward();
    EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
  EXPECT_CONTAINS(message_of<IndexError>([&] {
                    nn::embedding(indices, ones({5, 2}), -6);
                  }),
                  "embedding: padding_idx -6");
  EXPECT_CONTAINS(message_of<IndexError>([&] {
                    nn::embedding(indices, ones({3, 2}), {});
                  }),
                  "embedding: index 4");
}

TEST(Embedding, Errors) {
  nn::Embedding layer(5, 3);
  EXPECT_CONTAINS(message_of<IndexError>([&] {
                    layer(Tensor::of<std::int64_t>({1, -1}));
                  }),
                  "embedding: index -1");
  EXPECT_THROW(layer(Tensor::of<std::int64_t>({5})), IndexError);
  EXPECT_CONTAINS(message_of<DTypeError>([&] { layer(ones({2})); }), "float32[2]");
  EXPECT_CONTAINS(message_of<IndexError>([] { nn::Embedding(5, 3, 5); }), "padding_idx 5");
  EXPECT_EQ(layer(zeros({0, 2}, int64)).shape(), (Dims{0, 2, 3}));
  EXPECT_EQ(layer(Tensor::of<std::uint8_t>({4})).shape(), (Dims{1, 3}));
}

TEST(Sequential, ByNameAndPosition) {
  nn::Sequential net;
  net.push_back("first", make<nn::Linear>(2, 2)).push_back(make<nn::ReLU>());
  EXPECT_EQ(net.children()[0].first, "first");
  EXPECT_EQ(net.children()[1].first, "1");
  EXPECT_EQ(net.at(1).type_name(), "ReLU");
  EXPECT_CONTAINS(message_of<IndexError>([&] { net.at(2); }), "position 2 of 2");
  const Tensor x = ones({1});
  EXPECT_TRUE(nn::Sequential()(x).is_same(x));
}

TEST(MLP, IsItsLayersOneAfterTheOther) {
  nn::MLP net({6, 5, 4, 3});
  const std::vector<Tensor> p = net.parameters();
  ASSERT_EQ(p.size(), 6U);
  const Tensor x = randn({7, 6});
  const Tensor hidden = relu(linear(relu(linear(x, p[0], p[1])), p[2], p[3]));
  EXPECT_TRUE(near(net(x), linear(hidden, p[4], p[5]), 1e-5, 1e-6));
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::MLP({3}); }), "MLP: ");
  // Dropout between the layers only: the last has none.
  nn::MLP drops({4, 4}, {.dropout = 0.9});
  EXPECT_TRUE(near(drops(x[0][0] * ones({4})), drops.eval()(x[0][0] * ones({4})), 0, 0));
}

TEST(MLP, Trains) {
  manual_seed(1);
  nn::MLP net({2, 16, 1}, {.activation = Activation::Silu});
  const Tensor x = uniform({64, 2}, -1, 1);
  const Tensor wanted = expand_dims(select(x, 1, 0) * select(x, 1, 1), {1});
  double first = 0;
  double last = 0;
  for (int step = 0; step < 300; ++step) {
    const Tensor loss = nn::mse_loss(net(x), wanted);
    (step == 0 ? first : last) = loss.item<double>();
    net.zero_grad();
    loss.backward();
    const no_grad off;
    for (const Tensor& p : net.parameters()) p -= p.grad() * 0.3;
  }
  EXPECT_LT(last, first * 0.1);
}

TEST(Recurrent, DropoutBetweenLayersInTrainingOnly) {
  nn::LSTM net(3, 8, {.num_layers = 2, .dropout = 0.5});
  const Tensor x = randn({5, 2, 3});
  EXPECT_FALSE(near(net(x), net(x), 0, 0));
  net.eval();
  EXPECT_TRUE(near(net(x), net(x), 0, 0));
}

TEST(Recurrent, Errors) {
  nn::GRU net(3, 4, {.num_layers = 2});
  EXPECT_CONTAINS(message_of<ShapeError>([&] { net(ones({5, 2, 4})); }), "GRU: needs [T, N, 3]");
  EXPECT_CONTAINS(message_of<ShapeError>([&] { net(ones({3})); }), "float32[3]");
  EXPECT_CONTAINS(message_of<ShapeError>([&] { net(ones({0, 2, 3})); }), "no time steps");
  EXPECT_CONTAINS(message_of<ShapeError>([&] {
                    net.forward(ones({5, 2, 3}), ones({1, 2, 4}));
                  }),
                  "the first hidden state is float32[1,2,4], needed is [2,2,4]");
  message_of<ValueError>([&] { net(Tensor()); });
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::RNN(3, 0); }), "RNN: hidden_size");
  message_of<ValueError>([] { nn::RNN(3, 2, {.num_layers = 0}); });
  EXPECT_EQ(net(ones({5, 0, 3})).shape(), (Dims{5, 0, 4}));
}

TEST(Recurrent, GoesOnFromWhereItStopped) {
  nn::LSTM net(3, 4, {.num_layers = 2});
  net.to(float64);
  const Tensor x = randn({6, 2, 3}, float64);
  const nn::LSTMOutput whole = net.forward(x, {}, {});
  const nn::LSTMOutput start = net.forward(narrow(x, 0, 0, 2), {}, {});
  const nn::LSTMOutput rest = net.forward(narrow(x, 0, 2, 4), start.h, start.c);
  EXPECT_TRUE(near(concat({start.output, rest.output}, 0), whole.output, 1e-13, 1e-14));
  EXPECT_TRUE(near(rest.h, whole.h, 1e-13, 1e-14));
  EXPECT_TRUE(near(rest.c, whole.c, 1e-13, 1e-14));
}

}  // namespace
}  // namespace baregrad
