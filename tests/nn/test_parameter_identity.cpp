// A parameter stays the same tensor: when its dtype changes, when a member is assigned, when it is
// initialised.
#include "tests/any_device.h"
#include "tests/nn/support.h"

namespace baregrad {
namespace {

using nn::make;

/// The same network and data, trained by `steps` steps of an optimizer, from float64 initial
/// values.
template <class Optimizer, class Options>
void expect_training_goes_on(const Options& options, double tolerance) {
  const Tensor x = linspace(-1, 1, 24, float64).reshape({8, 3});
  const Tensor y = sum(x * x, 1, true);
  Generator generator(3);
  nn::Linear early(3, 1, true, Activation::Silu, &generator);
  Optimizer before(early.parameters(), options);  // made in float32, used in float64
  early.to(float64);
  nn::Linear late(3, 1, true, Activation::Silu, &generator);
  late.to(float64);
  ASSERT_TRUE(late.load_state_dict(early.state_dict()).missing.empty());
  Optimizer after(late.parameters(), options);
  for (int step = 0; step < 5; ++step) {
    for (nn::Linear* layer : {&early, &late}) {
      layer->zero_grad();
      nn::mse_loss((*layer)(x), y).backward();
    }
    before.step();
    after.step();
  }
  EXPECT_TRUE(near(early.weight, late.weight, tolerance, tolerance));
  EXPECT_TRUE(near(early.bias, late.bias, tolerance, tolerance));
}

TEST(ParameterIdentity, OptimizersReachParametersOfAnotherDtype) {
  expect_training_goes_on<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, 0);
  expect_training_goes_on<optim::Adam>(optim::AdamOptions{.lr = 0.1}, 0);
  expect_training_goes_on<optim::AdamW>(optim::AdamWOptions{.lr = 0.1}, 0);
  expect_training_goes_on<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.1}, 0);
  expect_training_goes_on<optim::Adagrad>(optim::AdagradOptions{.lr = 0.1}, 0);
  expect_training_goes_on<optim::Lion>(optim::LionOptions{.lr = 0.1}, 0);
}

TEST(ParameterIdentity, EveryHandleSeesTheDtype) {
  auto net = nn::sequential({make<nn::Linear>(3, 4), make<nn::BatchNorm1d>(4)});
  const std::vector<Tensor> handles = net->parameters();
  const Tensor running = net->named_buffers()[0].tensor;
  net->to(float64);
  const std::vector<Tensor> now = net->parameters();
  for (std::size_t i = 0; i < handles.size(); ++i) {
    EXPECT_TRUE(handles[i].is_same(now[i]));
    EXPECT_EQ(handles[i].dtype(), float64);
    EXPECT_TRUE(handles[i].requires_grad());
    EXPECT_TRUE(handles[i].is_leaf());
  }
  EXPECT_EQ(running.dtype(), float32);  // a handle on a buffer keeps the old one, as in PyTorch
  EXPECT_EQ(net->named_buffers()[0].tensor.dtype(), float64);
}

TEST(ParameterIdentity, ValuesGoThroughDtypesAsACastDoes) {
  nn::Linear layer(3, 4);
  const Tensor wide = layer.weight.detach().clone().to(float64);
  layer.to(float16);
  EXPECT_TRUE(near(layer.weight, wide.to(float16), 0, 0));
  layer.to(float64);
  EXPECT_TRUE(near(layer.weight, wide.to(float16).to(float64), 0, 0));
}

TEST(ParameterIdentity, HooksGradientsAndFrozenOnesFollow) {
  nn::Linear layer(3, 2);
  int calls = 0;
  layer.weight.register_hook([&](const Tensor& g) {
    ++calls;
    EXPECT_EQ(g.dtype(), layer.weight.dtype());
    return Tensor();
  });
  layer.bias.requires_grad_(false);
  sum(layer(ones({1, 3}))).backward();
  layer.to(float64);
  EXPECT_EQ(layer.weight.grad().dtype(), float64);
  EXPECT_TRUE(near(layer.weight.grad(), ones({2, 3}, float64), 0, 0));
  EXPECT_FALSE(layer.bias.requires_grad());
  EXPECT_EQ(layer.bias.dtype(), float64);
  sum(layer(ones({1, 3}, float64))).backward();
  EXPECT_TRUE(near(layer.weight.grad(), full({2, 3}, 2.0, float64), 0, 0));
  EXPECT_EQ(calls, 2);
}

TEST(ParameterIdentity, AGraphRecordedBeforeSendsItsGradientsOn) {
  nn::Linear layer(3, 2);
  const Tensor x = randn({4, 3});
  const Tensor loss = sum(square(layer(x)));
  const std::vector<Tensor> wanted =
      autograd::grad({loss}, layer.parameters(), {}, {.retain_graph = true});
  layer.to(float64);
  loss.backward();
  EXPECT_EQ(layer.weight.grad().dtype(), float64);
  EXPECT_TRUE(near(layer.weight.grad(), wanted[0].to(float64), 0, 0));
  EXPECT_TRUE(near(layer.bias.grad(), wanted[1].to(float64), 0, 0));
}

TEST(ParameterIdentity, TiedOnesStayTied) {
  auto first = make<nn::Linear>(2, 2, false);
  auto second = make<nn::Linear>(2, 2, false);
  second->weight = first->weight;
  auto net = nn::sequential({first, make<nn::Tanh>(), second});
  optim::SGD optimizer(net->parameters(), {.lr = 0.5});
  net->to(float64);
  EXPECT_TRUE(first->weight.is_same(second->weight));
  const Tensor before = first->weight.detach().clone();
  sum((*net)(ones({1, 2}, float64))).backward();
  optimizer.step();
  EXPECT_FALSE(near(first->weight, before, 0, 0));
  EXPECT_TRUE(first->weight.is_same(second->weight));
}

TEST(ParameterIdentity, AViewOfAFlatBufferBecomesATensorOfItsOwn) {
  const Tensor flat = arange(6, float32);
  nn::Module net;
  const Tensor part = flat.reshape({2, 3}).transpose(0, 1).requires_grad_();
  net.add_parameter("w", part);
  net.to(float64);
  EXPECT_EQ(part.dtype(), float64);
  EXPECT_EQ(part.to_vector<double>(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(flat.dtype(), float32);
  {
    const no_grad off;
    part.fill_(7);
  }
  EXPECT_EQ(flat.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(ParameterIdentity, AParameterThatIsABufferTooIsConvertedOnce) {
  nn::Module net;
  const Tensor w = ones({2}).requires_grad_();
  net.add_parameter("w", w);
  net.add_buffer("same", w);
  net.to(float64);
  EXPECT_TRUE(net.own_buffers()[0].tensor->is_same(w));
  EXPECT_EQ(w.dtype(), float64);
}

TEST(ParameterIdentity, MomentsAreConvertedWithTheParameter) {
  for (const DType dtype : {float64, bfloat16}) {
    nn::Linear layer(3, 1);
    optim::Adam optimizer(layer.parameters(), {.lr = 0.1});
    optim::EMA averages(layer.parameters(), 0.5);
    const auto step = [&](DType of) {
      layer.zero_grad();
      sum(square(layer(ones({2, 3}, of)))).backward();
      optimizer.step();
      averages.update();
    };
    step(float32);
    step(float32);
    const Tensor first = optimizer.state().tensors[0].tensor.clone();
    layer.to(dtype);
    step(dtype);
    const DType kept = dtype == float64 ? float64 : float32;
    const State state = optimizer.state();
    EXPECT_EQ(state.values.at("0.step"), "3");
    EXPECT_EQ(state.tensors[0].name, "0.exp_avg");
    EXPECT_EQ(state.tensors[0].tensor.dtype(), kept);
    // m3 = 0.9 m2 + 0.1 g3
    const Tensor wanted = first.to(float64) * 0.9 + layer.weight.grad().to(float64) * 0.1;
    EXPECT_TRUE(near(state.tensors[0].tensor.to(float64), wanted, 1e-6, 1e-7));
    EXPECT_EQ(averages.averages()[0].dtype(), kept);
    averages.swap();
    EXPECT_EQ(layer.weight.dtype(), dtype);
  }
}

TEST(ParameterIdentity, StatesOfAnotherDtypeAreConvertedAtLoad) {
  nn::Linear narrow(2, 1);
  optim::Adam first(narrow.parameters());
  sum(narrow(ones({1, 2}))).backward();
  first.step();
  nn::Linear wide(2, 1);
  wide.to(float64);
  optim::Adam second(wide.parameters());
  second.load_state(first.state());
  EXPECT_TRUE(
      near(second.state().tensors[0].tensor, first.state().tensors[0].tensor.to(float64), 0, 0));
  State wrong = first.state();
  wrong.tensors[0].tensor = zeros({1, 2}, int64);
  EXPECT_CONTAINS(message_of<ValueError>([&] { second.load_state(wrong); }),
                  "tensor '0.exp_avg' is int64[1,2], not float64[1,2]");
}

TEST(ParameterIdentity, OutOfMemoryChangesNothing) {
  FaultInjectingAllocator faults(current_allocator());
  auto net = nn::sequential({make<nn::Linear>(20, 20), make<nn::Linear>(20, 20)});
  sum((*net)(ones({1, 20}))).backward();
  const AllocatorScope scope(faults);
  for (std::uint64_t at = 0; at < 8; ++at) {
    faults.fail_at(at, true);
    EXPECT_THROW(net->to(float64), OutOfMemory) << at;
    for (const Tensor& p : net->parameters()) {
      EXPECT_EQ(p.dtype(), float32);
      EXPECT_EQ(p.grad().dtype(), float32);
    }
  }
  faults.never_fail();
  net->to(float64);
  EXPECT_EQ(net->parameters()[3].grad().dtype(), float64);
}

TEST(ParameterIdentity, ParametersMoveToADeviceAndStayTheTensorsTheyAre) {
  const Device there = test::any_device();
  const auto net = nn::sequential({make<nn::Linear>(3, 4), make<nn::BatchNorm1d>(4)});
  net->to(Device());
  optim::SGD optimizer(net->parameters(), {.lr = 0.5, .momentum = 0.9});
  const auto step = [&](Device device) {
    optimizer.zero_grad();
    sum((*net)(arange(6, float32, device).reshape({2, 3}))).backward();
    optimizer.step();
  };
  step(Device());
  const std::vector<Tensor> before = net->parameters();
  const std::vector<float> values = before[0].to_vector<float>();
  EXPECT_EQ(&net->to(there), net.get());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(net->parameters()[i].is_same(before[i]));
    EXPECT_EQ(before[i].device(), there);
    EXPECT_EQ(before[i].grad().device(), there);
    EXPECT_TRUE(before[i].is_leaf() && before[i].requires_grad());
  }
  for (const NamedTensor& buffer : net->named_buffers()) EXPECT_EQ(buffer.tensor.device(), there);
  EXPECT_EQ(before[0].to_vector<float>(), values);
  step(there);
  for (const NamedTensor& state : optimizer.state().tensors) {
    EXPECT_EQ(state.tensor.device(), there);
  }
  net->to(Device(), float64);
  EXPECT_EQ(before[0].dtype(), float64);
  EXPECT_TRUE(before[0].device().is_cpu());
  net->to(there, float32).cpu();
  EXPECT_EQ(before[0].dtype(), float32);
  EXPECT_TRUE(before[0].device().is_cpu());
  const Device none(DeviceType::Cuda, 63);
  EXPECT_CONTAINS(message_of<ValueError>([&] { net->to(none); }), "to: ");
  EXPECT_CONTAINS(message_of<ValueError>([&] { nn::ReLU().to(none); }), "to: ");
}

TEST(ParameterIdentity, StateIsLoadedOntoTheParametersDevice) {
  nn::Linear here(3, 2);
  nn::Linear there(3, 2);
  here.cpu();
  there.to(test::any_device());
  const Tensor weight = there.weight;
  there.load_state_dict(here.state_dict());
  EXPECT_TRUE(there.weight.is_same(weight));
  EXPECT_EQ(weight.device(), test::any_device());
  EXPECT_EQ(weight.to_vector<float>(), here.weight.to_vector<float>());
}

TEST(ParameterIdentity, AssignedTensorsThatNobodyTrainsAreRefused) {
  nn::Linear layer(3, 2);
  optim::SGD optimizer(layer.parameters());
  const Tensor weight = layer.weight;
  layer.weight = zeros({2, 3});
  constexpr const char* kSaid =
      "Linear: float32[2,3] was assigned to the parameter \"weight\", float32[2,3]";
  EXPECT_CONTAINS(message_of<ValueError>([&] { layer(ones({1, 3})); }), kSaid);
  EXPECT_CONTAINS(message_of<ValueError>([&] { layer.parameters(); }), kSaid);
  EXPECT_CONTAINS(message_of<ValueError>([&] { layer.state_dict(); }), kSaid);
  EXPECT_CONTAINS(message_of<ValueError>([&] { layer.to(float64); }), kSaid);
  EXPECT_CONTAINS(message_of<ValueError>([&] {
                    nn::sequential({make<nn::ReLU>()})->zero_grad();
                    layer.zero_grad();
                  }),
                  kSaid);
  layer.weight = weight * 0.5;  // no leaf
  EXPECT_THROW(layer(ones({1, 3})), ValueError);
  layer.weight = ones({3, 2}).requires_grad_();  // another shape
  EXPECT_THROW(layer(ones({1, 3})), ValueError);
  layer.weight = weight;
  EXPECT_NO_THROW(layer(ones({1, 3})));
  // Through the function for it.
  layer.set_parameter("weight", zeros({2, 3}));
  EXPECT_NO_THROW(layer(ones({1, 3})));
}

TEST(ParameterIdentity, AParameterThatWasLeftOutMayComeLater) {
  struct Lazy : nn::Module {
    Tensor w;
    Lazy() { register_parameter("w", w); }
    Tensor forward(const Tensor& x) override { return x * w; }
  } net;
  EXPECT_TRUE(net.parameters().empty());
  net.w = ones({2});
  EXPECT_EQ(net.parameters().size(), 1U);
  EXPECT_TRUE(net.w.requires_grad());
}

TEST(ParameterIdentity, SequentialDrawsInOrder) {
  manual_seed(11);
  const auto one = make<nn::Linear>(3, 4);
  const auto two = make<nn::Linear>(4, 2);
  manual_seed(11);
  const auto net =
      nn::sequential({make<nn::Linear>(3, 4), make<nn::Tanh>(), make<nn::Linear>(4, 2)});
  manual_seed(11);
  const auto made = make<nn::Sequential>({make<nn::Linear>(3, 4), make<nn::Linear>(4, 2)});
  EXPECT_TRUE(near(net->parameters()[0], one->weight, 0, 0));
  EXPECT_TRUE(near(net->parameters()[2], two->weight, 0, 0));
  EXPECT_TRUE(near(made->parameters()[0], one->weight, 0, 0));
  EXPECT_TRUE(near(made->parameters()[2], two->weight, 0, 0));
}

}  // namespace
}  // namespace baregrad
