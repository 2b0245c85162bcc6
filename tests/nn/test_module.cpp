// Module: names, state, modes, dtypes, printing.
#include <sstream>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

using nn::make;

struct Net : nn::Module {
  std::shared_ptr<nn::Linear> hidden = register_module("hidden", make<nn::Linear>(3, 4));
  std::shared_ptr<nn::Sequential> tail = register_module(
      "tail",
      nn::sequential({make<nn::ReLU>(), make<nn::Linear>(4, 2, false), make<nn::Dropout>()}));
  Tensor scale = ones({2});
  Tensor steps = zeros({}, DType::Int64);
  Tensor cache = zeros({3});
  Net() {
    register_parameter("scale", scale);
    register_buffer("steps", steps);
    register_buffer("cache", cache, false);
  }
  Tensor forward(const Tensor& x) override { return (*tail)((*hidden)(x)) * scale; }
};

/// Makes protected members accessible.
struct Open : nn::Module {
  using Module::register_buffer;
  using Module::register_module;
  using Module::register_parameter;
  Tensor a = ones({2});
  Tensor b = ones({2});
};

std::vector<std::string> names(const NamedTensors& list) {
  std::vector<std::string> out;
  for (const NamedTensor& entry : list) out.push_back(entry.name);
  return out;
}
using Names = std::vector<std::string>;

TEST(Module, NamesAreDottedAndInOrder) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()),
            (Names{"scale", "hidden.weight", "hidden.bias", "tail.1.weight"}));
  EXPECT_EQ(names(net.named_buffers()), (Names{"steps", "cache"}));
  EXPECT_EQ(names(net.state_dict()),
            (Names{"scale", "steps", "hidden.weight", "hidden.bias", "tail.1.weight"}));
  EXPECT_EQ(net.parameter_count(), 2 + 12 + 4 + 8);
  EXPECT_EQ(net.parameters().size(), 4U);
  Names modules;
  for (const nn::NamedModule& at : net.named_modules()) modules.push_back(at.name);
  EXPECT_EQ(modules, (Names{"", "hidden", "tail", "tail.0", "tail.1", "tail.2"}));
}

TEST(Module, ParametersRequireGradientsAndBuffersDoNot) {
  Net net;
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad());
  for (const NamedTensor& b : net.named_buffers()) EXPECT_FALSE(b.tensor.requires_grad());
  for (const NamedTensor& s : net.state_dict()) EXPECT_FALSE(s.tensor.requires_grad());
}

TEST(Module, StateSharesMemory) {
  Net net;
  net.state_dict()[0].tensor.fill_(7.0);
  EXPECT_EQ(net.scale.to_vector<float>(), (std::vector<float>{7, 7}));
}

TEST(Module, StateRoundTrips) {
  Net from;
  Net to;
  from.steps.fill_(5);
  to.load_state_dict(from.state_dict());
  const NamedTensors a = from.state_dict();
  const NamedTensors b = to.state_dict();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(near(b[i].tensor, a[i].tensor, 0, 0)) << a[i].name;
    EXPECT_FALSE(a[i].tensor.same_storage(b[i].tensor));
  }
  EXPECT_TRUE(to.hidden->weight.requires_grad());
  to.load_state_dict(to.state_dict());  // from its own memory
  EXPECT_TRUE(near(to.hidden->weight, from.hidden->weight, 0, 0));
}

TEST(Module, LoadConvertsFloats) {
  Net net;
  NamedTensors state = net.state_dict();
  for (NamedTensor& entry : state) {
    if (is_floating(entry.tensor.dtype())) entry.tensor = full_like(entry.tensor, 0.5, float64);
  }
  net.load_state_dict(state);
  EXPECT_EQ(net.scale.dtype(), float32);
  EXPECT_TRUE(near(net.hidden->weight, full({4, 3}, 0.5), 0, 0));
}

TEST(Module, OneErrorNamesAllThatIsWrong) {
  Net net;
  NamedTensors state;
  for (const NamedTensor& entry : net.state_dict()) {
    state.push_back({entry.name, zeros_like(entry.tensor)});
  }
  state[0].name = "stale";          // scale is missing
  state[2].tensor = zeros({3, 4});  // hidden.weight is [4,3]
  state[1].tensor = zeros({});      // steps are integers
  state.push_back({"extra.x", ones({})});
  state.push_back(state[3]);
  const std::string text = message_of<ValueError>([&] { net.load_state_dict(state); });
  EXPECT_EQ(text,
            "load_state_dict: the state does not fit Net; nothing was loaded\n"
            "  missing: scale\n"
            "  unexpected: stale, extra.x\n"
            "  of the wrong shape or kind: steps (float32[] given, int64[] needed), "
            "hidden.weight (float32[3,4] given, float32[4,3] needed)\n"
            "  given twice: hidden.bias");
  // tail.1.weight was valid, and still nothing was written.
  EXPECT_GT(norm(net.tail->at(1).parameters()[0]).item<double>(), 0.0);
  EXPECT_TRUE(near(net.scale, ones({2}), 0, 0));
}

TEST(Module, NotStrictLeavesOutWhatIsMissingOrUnknown) {
  Net net;
  const nn::LoadResult result =
      net.load_state_dict({{"scale", full({2}, 3.0)}, {"other", ones({1})}}, false);
  EXPECT_EQ(result.missing, (Names{"steps", "hidden.weight", "hidden.bias", "tail.1.weight"}));
  EXPECT_EQ(result.unexpected, (Names{"other"}));
  EXPECT_TRUE(near(net.scale, full({2}, 3.0), 0, 0));
  const std::string text = message_of<ValueError>([&] {
    net.load_state_dict({{"scale", ones({3})}, {"other", ones({1})}}, false);
  });
  EXPECT_CONTAINS(text, "scale (float32[3] given");
  EXPECT_EQ(text.find("missing"), std::string::npos);
  message_of<ValueError>([&] { net.load_state_dict({{"scale", Tensor()}}, false); });
}

TEST(Module, TrainAndEvalReachEverything) {
  Net net;
  net.eval();
  for (const nn::NamedModule& at : net.named_modules()) EXPECT_FALSE(at.module->is_training());
  net.train();
  for (const nn::NamedModule& at : net.named_modules()) EXPECT_TRUE(at.module->is_training());
}

TEST(Module, ApplyVisitsChildrenFirst) {
  Net net;
  Names order;
  net.apply([&](nn::Module& m) { order.push_back(m.type_name()); });
  EXPECT_EQ(order, (Names{"Linear", "ReLU", "Linear", "Dropout", "Sequential", "Net"}));
}

TEST(Module, ToConvertsParametersGradientsAndFloatingBuffers) {
  Net net;
  net.eval();
  sum(net(ones({1, 3}))).backward();
  ASSERT_TRUE(net.scale.grad().defined());
  net.to(float64);
  for (const Tensor& p : net.parameters()) {
    EXPECT_EQ(p.dtype(), float64);
    EXPECT_TRUE(p.requires_grad());
    EXPECT_TRUE(p.is_leaf());
    EXPECT_EQ(p.grad().dtype(), float64);
  }
  EXPECT_EQ(net.cache.dtype(), float64);
  EXPECT_EQ(net.steps.dtype(), int64);
  EXPECT_EQ(net(ones({1, 3}, float64)).dtype(), float64);
  EXPECT_CONTAINS(message_of<DTypeError>([&] { net.to(int64); }), "to: ");
}

TEST(Module, HalfPrecisionGoesThrough) {
  for (const DType dtype : {float16, bfloat16}) {
    Net net;
    net.eval().to(dtype);
    const Tensor y = net(ones({2, 3}, dtype));
    EXPECT_EQ(y.dtype(), dtype);
    sum(y).backward();
    EXPECT_EQ(net.hidden->weight.grad().dtype(), dtype);
  }
}

TEST(Module, TiedWeightsAreOneParameter) {
  auto first = make<nn::Linear>(2, 2, false);
  auto second = make<nn::Linear>(2, 2, false);
  second->weight = first->weight;
  nn::Sequential net{first, second};
  EXPECT_EQ(names(net.named_parameters()), (Names{"0.weight"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"0.weight", "1.weight"}));
  EXPECT_EQ(net.parameter_count(), 4);
  net.to(float64);
  EXPECT_TRUE(first->weight.is_same(second->weight));
  // A module with two owners.
  nn::Sequential twice{first, first};
  EXPECT_EQ(twice.parameters().size(), 1U);
  EXPECT_EQ(names(twice.state_dict()), (Names{"0.weight", "1.weight"}));
}

TEST(Module, SetParameterByName) {
  Net net;
  const Tensor w = ones({4, 3}) * ones({1}).requires_grad_();
  net.set_parameter("hidden.weight", w);
  EXPECT_TRUE(net.hidden->weight.is_same(w));
  EXPECT_CONTAINS(message_of<ShapeError>([&] {
                    net.set_parameter("hidden.weight", ones({3, 4}));
                  }),
                  "hidden.weight");
  EXPECT_CONTAINS(message_of<ValueError>([&] { net.set_parameter("hiden.weight", w); }),
                  "hiden.weight");
}

TEST(Module, GradientsAreDroppedAndFrozen) {
  Net net;
  sum(net(ones({1, 3}))).backward();
  net.zero_grad();
  for (const Tensor& p : net.parameters()) EXPECT_FALSE(p.grad().defined());
  net.requires_grad_(false);
  EXPECT_FALSE(net(ones({1, 3})).requires_grad());
  net.requires_grad_();
  EXPECT_TRUE(net(ones({1, 3})).requires_grad());
}

TEST(Module, NamesAreChecked) {
  Open module;
  module.register_parameter("a", module.a);
  EXPECT_CONTAINS(message_of<ValueError>([&] { module.register_parameter("a", module.b); }),
                  "has a \"a\" already");
  EXPECT_CONTAINS(message_of<ValueError>([&] { module.register_buffer("a", module.b); }),
                  "register_buffer");
  message_of<ValueError>([&] { module.register_module("a", make<nn::ReLU>()); });
  message_of<ValueError>([&] { module.register_parameter("b.c", module.b); });
  message_of<ValueError>([&] { module.register_parameter("", module.b); });
  message_of<ValueError>([&] { module.register_module("c", std::shared_ptr<nn::ReLU>()); });
  EXPECT_EQ(module.parameters().size(), 1U);
}

TEST(Module, AModuleIsNotBelowItself) {
  const auto outer = nn::sequential();
  const auto inner = nn::sequential();
  outer->push_back(inner);
  EXPECT_CONTAINS(message_of<ValueError>([&] { outer->push_back(outer); }), "below itself");
  EXPECT_CONTAINS(message_of<ValueError>([&] { inner->push_back(outer); }), "below itself");
}

TEST(Module, DeepNesting) {
  auto net = nn::sequential({make<nn::Linear>(2, 2)});
  for (int i = 0; i < 500; ++i) net = nn::sequential({net});
  EXPECT_EQ(net->named_modules().size(), 502U);
  EXPECT_EQ(net->parameters().size(), 2U);
  net->eval().to(float64);
  EXPECT_EQ((*net)(ones({1, 2}, float64)).shape(), (Dims{1, 2}));
}

TEST(Module, NestedTooDeepForTheStackIsAnErrorAndGoesWithoutRecursion) {
  auto net = nn::sequential({make<nn::Linear>(2, 2)});
  for (int i = 0; i < 200000; ++i) net = nn::sequential({net});
  EXPECT_THROW((*net)(ones({1, 2})), ValueError);
  EXPECT_THROW(static_cast<void>(net->to_string()), ValueError);
  EXPECT_THROW(static_cast<void>(net->named_parameters()), ValueError);
  const auto outer = make<nn::Sequential>();
  outer->push_back(net);
  EXPECT_THROW(net->push_back(outer), ValueError);
  net.reset();
}

TEST(Module, Prints) {
  Net net;
  std::ostringstream out;
  out << net;
  EXPECT_EQ(out.str(),
            "Net(\n"
            "  (hidden): Linear(in_features=3, out_features=4, bias=True)\n"
            "  (tail): Sequential(\n"
            "    (0): ReLU()\n"
            "    (1): Linear(in_features=4, out_features=2, bias=False)\n"
            "    (2): Dropout(p=0.5, inplace=False)\n"
            "  )\n"
            ")");
  EXPECT_EQ(nn::MLP({4, 3, 2}, {.activation = Activation::Gelu, .dropout = 0.1}).to_string(),
            "MLP(\n"
            "  (0): Linear(in_features=4, out_features=3, bias=True, activation=gelu)\n"
            "  (1): Linear(in_features=3, out_features=2, bias=True)\n"
            "  (dropout): Dropout(p=0.1, inplace=False)\n"
            ")");
}

TEST(Module, ForwardOfOneTensorIsRefusedWhereThereIsNone) {
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::MSELoss().Module::operator()(ones({1})); }),
                  "MSELoss: has no forward of one tensor");
}

TEST(Module, RecordedOpsCarryNames) {
  Net net;
  net.eval();
  const std::string table = graph::summary(net(ones({1, 3})));
  EXPECT_CONTAINS(table, "hidden");
  EXPECT_CONTAINS(table, "tail/1");
}

// ---- Children that are not members --------------------------------------------------------------

TEST(Module, KeepsAddedParts) {
  nn::Module net;
  Tensor& w = net.add_parameter("w", ones({2, 3}).requires_grad_());
  net.add_parameter("absent", Tensor());
  net.add_buffer("steps", zeros({}, DType::Int64));
  net.add_buffer("cache", zeros({4}), false);
  net.add_module("fc", make<nn::Linear>(3, 1));
  EXPECT_EQ(names(net.named_parameters()), (Names{"w", "fc.weight", "fc.bias"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"w", "steps", "fc.weight", "fc.bias"}));
  EXPECT_EQ(net.own_parameters().size(), 2U);
  EXPECT_EQ(net.own_buffers().size(), 2U);
  net.to(DType::Float64);
  EXPECT_EQ(w.dtype(), DType::Float64);
  EXPECT_THROW(net.add_parameter("steps", ones({1})), ValueError);
}

TEST(Module, AddedParametersKeepTheirWish) {
  nn::Module net;
  EXPECT_FALSE(net.add_parameter("frozen", ones({2})).requires_grad());
}

TEST(Module, AddedPartsAreReplacedInPlaceAndRemoved) {
  nn::Module net;
  net.add_parameter("w", ones({2}));
  net.add_buffer("b", ones({2}));
  net.add_module("one", make<nn::Linear>(3, 1));
  net.add_module("two", make<nn::Linear>(1, 1));
  net.add_module("one", make<nn::ReLU>());
  EXPECT_EQ(names(net.named_parameters()), (Names{"w", "two.weight", "two.bias"}));
  EXPECT_EQ(net.children()[0].first, "one");
  for (const char* name : {"w", "b", "one"}) EXPECT_TRUE(net.remove(name)) << name;
  EXPECT_FALSE(net.remove("w"));
  EXPECT_EQ(names(net.state_dict()), (Names{"two.weight", "two.bias"}));
  EXPECT_EQ(net.children().size(), 1U);
  net.add_parameter("w", zeros({5}));
  EXPECT_EQ(net.own_parameters()[0].tensor->shape(), Dims{5});
}

TEST(Module, WhatTheClassHoldsStays) {
  Net net;
  EXPECT_THROW(net.remove("scale"), ValueError);
  EXPECT_THROW(net.remove("steps"), ValueError);
  EXPECT_THROW(net.remove("hidden"), ValueError);
  EXPECT_THROW(net.add_module("hidden", make<nn::Linear>(3, 4)), ValueError);
  const auto chain = nn::sequential({make<nn::ReLU>(), make<nn::ReLU>()});
  chain->add_module("1", make<nn::Linear>(2, 2));
  EXPECT_EQ(names(chain->state_dict()), (Names{"1.weight", "1.bias"}));
  EXPECT_THROW(chain->add_module("1", chain), ValueError);
}

TEST(Module, SetCallStandsForForward) {
  const auto chain = nn::sequential({make<nn::Identity>(), make<nn::Identity>()});
  EXPECT_FALSE(chain->has_call());
  chain->at(0).set_call([](nn::Module& self, const Tensor& x) { return self.forward(x) * 3.0; });
  EXPECT_TRUE(near((*chain)(ones({2})), full({2}, 3.0), 0, 0));
  chain->at(0).set_call({});
  EXPECT_TRUE(near((*chain)(ones({2})), ones({2}), 0, 0));
}

TEST(Module, ModeOfOneModuleAlone) {
  Net net;
  net.set_training(false);
  EXPECT_FALSE(net.is_training());
  EXPECT_TRUE(net.hidden->is_training());
}

}  // namespace
}  // namespace baregrad
