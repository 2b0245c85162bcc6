// Op calls as data: attributes, the owning form, inference without memory, executors.
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "ops/attr_types.h"
#include "ops/dispatch.h"
#include "ops/executor.h"
#include "ops/infer.h"

namespace baregrad {
namespace {

// ---- Attributes

TEST(Attrs, EveryFieldTakesPartInComparingHashingAndPrinting) {
  const SliceAttrs a{{0, 1}, {1, 1}, {2, 3}};
  SliceAttrs b = a;
  EXPECT_TRUE(same_attrs(a, b));
  EXPECT_EQ(hash_attrs(a), hash_attrs(b));
  EXPECT_EQ(to_string(AttrsRef(a)), "starts=[0,1], steps=[1,1], sizes=[2,3]");
  for (Dims* field : {&b.starts, &b.steps, &b.sizes}) {
    b = a;
    (*field)[1] = 7;
    EXPECT_FALSE(same_attrs(a, b));
    EXPECT_NE(hash_attrs(a), hash_attrs(b));
  }
}

TEST(Attrs, FloatsAreComparedByTheirBits) {
  const NumbersAttrs zero{{0.0}};
  const NumbersAttrs negative{{-0.0}};
  EXPECT_FALSE(same_attrs(zero, negative));
  const NumbersAttrs nan{{std::numeric_limits<double>::quiet_NaN()}};
  const NumbersAttrs same = nan;
  EXPECT_TRUE(same_attrs(nan, same));
}

TEST(Attrs, KindsDiffer) {
  const ScanAttrs scan{1, DType::Float32};
  const SoftmaxAttrs softmax{1, DType::Float32};
  EXPECT_FALSE(same_attrs(scan, softmax));
  EXPECT_FALSE(same_attrs(scan, AttrsRef()));
  EXPECT_TRUE(same_attrs(AttrsRef(), AttrsRef()));
  EXPECT_THROW(static_cast<void>(AttrsRef(scan).as<SoftmaxAttrs>()), Error);
}

TEST(Attrs, PrintsWhatAPersonReads) {
  EXPECT_EQ(to_string(AttrsRef(ReduceAttrs{{0b101}, true, DType::Int64, 1.5})),
            "axes=[0,2], keepdims=true, dtype=int64, correction=1.5");
  EXPECT_EQ(to_string(AttrsRef(ProductAttrs{Activation::Relu})),
            "activation=relu, accumulate=false");
  EXPECT_EQ(to_string(AttrsRef(CrossEntropyAttrs{LossReduction::Sum, 0.1})),
            "reduction=sum, smoothing=0.1, ignored=-100");
  EXPECT_EQ(to_string(AttrsRef()), "");
}

TEST(Attrs, AnOwnedCopyOutlivesTheOriginal) {
  OwnedAttrs owned;
  {
    const PadAttrs pad{{1, 2}, {3, 4}, 9};
    owned = OwnedAttrs(pad);
  }
  EXPECT_EQ(owned.ref().as<PadAttrs>().after, (Dims{3, 4}));
  EXPECT_EQ(owned.ref().as<PadAttrs>().element, 9U);
}

TEST(Attrs, EveryOpNamesAStructThatIsThere) {
  for (int i = 0; i < kNumOps; ++i) {
    const AttrKind kind = kOpRows[i].attrs;
    EXPECT_EQ(attrs_size(kind) != 0, kind != AttrKind::None) << kOpRows[i].name;
  }
}

// ---- Calls that are kept

/// Keeps every call that passes.
class Recorder final : public Executor {
 public:
  void execute(const OpCall& call, std::span<Tensor> results) override {
    calls.emplace_back(call);
    texts.push_back(to_string(call));
    pass_on(call, results);
  }
  std::vector<OwnedCall> calls;
  std::vector<std::string> texts;
};

TEST(OwnedCall, TellsInPlaceFromNew) {
  const Tensor x = ones({2, 3});
  const Tensor y = full({2, 3}, 2.0F);
  Recorder recorder;
  {
    const ExecutorScope scope(recorder);
    const Tensor z = add(x, y);
    add_(x, y);
    index_put_(x, {Tensor::of<std::int64_t>({0})}, 5.0F);
  }
  ASSERT_GE(recorder.texts.size(), 3U);
  EXPECT_EQ(recorder.texts[0], "add(float32[2,3], float32[2,3])");
  EXPECT_EQ(recorder.texts[1], "add_(float32[2,3], float32[2,3]) -> float32[2,3]");
  EXPECT_EQ(recorder.calls[0].kind(), CallKind::Make);
  EXPECT_EQ(recorder.calls[1].kind(), CallKind::Into);
  EXPECT_EQ(recorder.calls.back().op(), OpId::index_put);
  EXPECT_EQ(recorder.calls.back().kind(), CallKind::Update);
  EXPECT_TRUE(recorder.calls[1].outputs()[0].is_same(x));
  EXPECT_FALSE(recorder.calls[0] == recorder.calls[1]);
}

TEST(OwnedCall, ComparesAndHashes) {
  const Tensor x = ones({2, 3});
  Recorder recorder;
  {
    const ExecutorScope scope(recorder);
    for (const int axis : {0, 0, 1}) static_cast<void>(sum(x, axis));
  }
  ASSERT_EQ(recorder.calls.size(), 3U);
  EXPECT_TRUE(recorder.calls[0] == recorder.calls[1]);
  EXPECT_EQ(recorder.calls[0].hash(), recorder.calls[1].hash());
  EXPECT_FALSE(recorder.calls[0] == recorder.calls[2]);
}

TEST(OwnedCall, RunsAgainToTheSameBitsAndRandomCallsGoOn) {
  Generator generator(7);
  Recorder recorder;
  Tensor first;
  {
    const ExecutorScope scope(recorder);
    first = rand({5}, DType::Float32, &generator);
  }
  ASSERT_EQ(recorder.calls.size(), 1U);
  EXPECT_EQ(recorder.calls[0].generator(), &generator);
  EXPECT_EQ(recorder.calls[0].draws(), 2U);
  const auto again = [&] {
    return recorder.calls[0].with_call([](const OpCall& call) { return run(call); });
  };
  // A replay draws new numbers: the call says how many, not which.
  EXPECT_NE(again().to_vector<float>(), first.to_vector<float>());
  generator.manual_seed(7);
  EXPECT_EQ(again().to_vector<float>(), first.to_vector<float>());
}

// ---- Inference

TEST(Infer, EveryRecordedCallIsInferredAsItRuns) {
  struct Check final : Executor {
    int seen = 0;
    void execute(const OpCall& call, std::span<Tensor> results) override {
      const std::vector<OutputSpec> specs = infer(call);
      pass_on(call, results);
      if (call.kind != CallKind::Make) return;
      ASSERT_EQ(specs.size(), results.size()) << to_string(call);
      for (std::size_t k = 0; k < specs.size(); ++k) {
        EXPECT_EQ(specs[k].shape, results[k].shape()) << to_string(call);
        EXPECT_EQ(specs[k].dtype, results[k].dtype()) << to_string(call);
      }
      ++seen;
    }
  } check;
  const ExecutorScope scope(check);
  const Tensor x = randn({4, 6});
  const Tensor image = randn({2, 3, 8, 8});
  static_cast<void>(softmax(x, 1));
  static_cast<void>(mean(x, 0, true));
  static_cast<void>(argmax(x));
  static_cast<void>(x.mT());
  static_cast<void>(matmul(x, x.mT()));
  static_cast<void>(sort_with_indices(x, 1, false));
  static_cast<void>(topk(x, 2, 1, true));
  static_cast<void>(masked_select(x, x > 0));
  static_cast<void>(nonzero(x));
  static_cast<void>(unique_all(x));
  static_cast<void>(layer_norm(x, {6}, {}, {}, 1e-5));
  static_cast<void>(concat({x, x}, 0));
  static_cast<void>(x < 0);
  EXPECT_GT(check.seen, 13);
}

TEST(Infer, NeedsNoMemory) {
  // Terabytes that nobody allocates.
  const std::int64_t huge = std::int64_t{1} << 38;
  const Tensor x = expand(zeros({1}), {huge});
  const Tensor* inputs[] = {&x, &x};
  const std::vector<OutputSpec> specs = infer({OpId::add, inputs});
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0].shape, (Dims{huge}));
}

// ---- Executors

TEST(Executors, NestAndSeeTheBackward) {
  Recorder outer;
  Recorder inner;
  const Tensor x = ones({3});
  x.requires_grad_();
  {
    const ExecutorScope first(outer);
    const ExecutorScope second(inner);
    sum(x * x).backward();
  }
  static_cast<void>(x + x);
  EXPECT_EQ(outer.texts, inner.texts);
  ASSERT_GE(inner.texts.size(), 4U);
  EXPECT_EQ(inner.texts[0], "multiply(float32[3], float32[3])");
  // The seed of backward is a call like any other.
  bool seeded = false;
  for (const OwnedCall& call : inner.calls) seeded |= call.op() == OpId::fill;
  EXPECT_TRUE(seeded);
}

TEST(Executors, OfAnotherThreadSeeNothing) {
  Recorder recorder;
  const ExecutorScope scope(recorder);
  std::thread([] { static_cast<void>(ones({3}) + 1.0F); }).join();
  EXPECT_TRUE(recorder.calls.empty());
}

TEST(Executors, AnErrorLeavesTheStackWhole) {
  Recorder recorder;
  const ExecutorScope scope(recorder);
  EXPECT_THROW(static_cast<void>(add(ones({2}), ones({3}))), ShapeError);
  static_cast<void>(ones({2}) + ones({2}));
  EXPECT_EQ(recorder.texts.back(), "add(float32[2], float32[2])");
}

// ---- Values are checked by the backend, before it writes

TEST(CheckedValues, ARefusedWriteIsNone) {
  const Tensor x = Tensor::of<std::int32_t>({1, 2, 3});
  const std::uint32_t version = x.version();
  EXPECT_THROW(floor_divide_(x, Tensor::of<std::int32_t>({1, 0, 1})), ValueError);
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(x.version(), version);
}

TEST(CheckedValues, ARefusedDrawTakesNoNumbers) {
  Generator generator(3);
  const Generator::State before = generator.state();
  EXPECT_THROW(static_cast<void>(bernoulli(Tensor::of<float>({0.5F, 2.0F}), &generator)),
               ValueError);
  EXPECT_EQ(generator.state(), before);
}

}  // namespace
}  // namespace baregrad
