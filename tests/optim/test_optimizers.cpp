// The updates, compared with formulas step by step and with PyTorch, on every instruction set,
// number of threads, layout and dtype.
#include <algorithm>
#include <limits>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "golden.h"
#include "tests/thread_counts.h"

namespace baregrad {
namespace {

using namespace test;
using kernels::Isa;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// One element's parameter and state, updated by the formulas of the papers and of PyTorch's
/// documentation.
struct Element {
  double p = 0;
  double m = 0;  // momentum or mean
  double v = 0;  // squares
  double b = 0;  // RMSprop's momentum
};

using Formula = void (*)(Element& e, double g, double t, const optim::Group& s);

void sgd(Element& e, double g, double t, const optim::Group& s) {
  if (s["maximize"] != 0) g = -g;
  g += s["weight_decay"] * e.p;
  if (s["momentum"] != 0) {
    e.m = t == 1 ? g : s["momentum"] * e.m + (1 - s["dampening"]) * g;
    g = s["nesterov"] != 0 ? g + s["momentum"] * e.m : e.m;
  }
  e.p -= s["lr"] * g;
}

template <bool kDecoupled>
void adam(Element& e, double g, double t, const optim::Group& s) {
  if (s["maximize"] != 0) g = -g;
  if (kDecoupled) {
    e.p -= s["lr"] * s["weight_decay"] * e.p;
  } else {
    g += s["weight_decay"] * e.p;
  }
  e.m = s["beta1"] * e.m + (1 - s["beta1"]) * g;
  e.v = s["beta2"] * e.v + (1 - s["beta2"]) * g * g;
  const double m = e.m / (1 - std::pow(s["beta1"], t));
  const double v = e.v / (1 - std::pow(s["beta2"], t));
  e.p -= s["lr"] * m / (std::sqrt(v) + s["eps"]);
}

void rmsprop(Element& e, double g, double, const optim::Group& s) {
  if (s["maximize"] != 0) g = -g;
  g += s["weight_decay"] * e.p;
  e.v = s["alpha"] * e.v + (1 - s["alpha"]) * g * g;
  double v = e.v;
  if (s["centered"] != 0) {
    e.m = s["alpha"] * e.m + (1 - s["alpha"]) * g;
    v -= e.m * e.m;
  }
  const double move = g / (std::sqrt(v) + s["eps"]);
  e.b = s["momentum"] * e.b + move;
  e.p -= s["lr"] * (s["momentum"] > 0 ? e.b : move);
}

void adagrad(Element& e, double g, double t, const optim::Group& s) {
  if (s["maximize"] != 0) g = -g;
  g += s["weight_decay"] * e.p;
  if (t == 1) e.v = s["initial_accumulator_value"];
  e.v += g * g;
  e.p -= s["lr"] / (1 + (t - 1) * s["lr_decay"]) * g / (std::sqrt(e.v) + s["eps"]);
}

void lion(Element& e, double g, double, const optim::Group& s) {
  if (s["maximize"] != 0) g = -g;
  const double u = s["beta1"] * e.m + (1 - s["beta1"]) * g;
  e.p -= s["lr"] * ((u > 0 ? 1 : u < 0 ? -1 : 0) + s["weight_decay"] * e.p);
  e.m = s["beta2"] * e.m + (1 - s["beta2"]) * g;
}

Formula formula_of(const std::string& optimizer) {
  if (optimizer == "SGD") return sgd;
  if (optimizer == "Adam") return adam<false>;
  if (optimizer == "AdamW") return adam<true>;
  if (optimizer == "RMSprop") return rmsprop;
  if (optimizer == "Adagrad") return adagrad;
  return lion;
}

class Updates : public OptimTest {};

TEST_F(Updates, NO_TSAN_EqualTheFormulaStepByStepOnEveryIsa) {
  constexpr std::int64_t kN = 37;
  for (const Isa isa : all_isas()) {
    kernels::set_active_isa(isa);
    for (const GoldenOptimizer& row : golden_optimizers()) {
      for (const DType dtype : {DType::Float64, DType::Float32}) {
        const Tensor p = values(kN, -1, dtype);
        const Made optimizer = row.make({p});
        const Formula formula = formula_of(optimizer->name());
        std::vector<Element> truth(kN);
        const std::vector<double> start = doubles(p);
        for (std::size_t i = 0; i < kN; ++i) truth[i].p = start[i];
        // Errors of rounding to float32 add up over the steps.
        const double tolerance = dtype == DType::Float64 ? 1e-12 : 4e-6;
        for (int k = 0; k < 100; ++k) {
          const Tensor g = values(kN, k, dtype);
          p.set_grad(g);
          optimizer->step();
          const std::vector<double> gradient = doubles(g);
          const std::vector<double> got = doubles(p);
          for (std::size_t i = 0; i < kN; ++i) {
            formula(truth[i], gradient[i], k + 1, optimizer->groups()[0]);
            ASSERT_NEAR(got[i], truth[i].p, tolerance * std::max(1.0, std::abs(truth[i].p)))
                << row.name << ' ' << name(dtype) << ' ' << isa_name(isa) << " step " << k
                << " element " << i;
          }
        }
      }
    }
  }
}

TEST_F(Updates, EqualPyTorchsAfter100Steps) {
  for (const GoldenOptimizer& row : golden_optimizers()) {
    for (const DType dtype : {DType::Float64, DType::Float32}) {
      const Tensor p = values(7, -1, dtype);
      const Made optimizer = row.make({p});
      for (int k = 0; k < 100; ++k) {
        p.set_grad(values(7, k, dtype));
        optimizer->step();
      }
      const std::vector<double>& wanted = dtype == DType::Float64 ? row.f64 : row.f32;
      const std::vector<double> got = doubles(p);
      ASSERT_EQ(got.size(), wanted.size());
      const double tolerance = dtype == DType::Float64 ? 1e-13 : 1e-6;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i])))
            << row.name << ' ' << name(dtype) << " element " << i;
      }
    }
  }
}

/// Small and large parameters of two dtypes, three steps. Returns the parameters and the state.
Tensors run_many(const GoldenOptimizer& row) {
  Tensors params;
  for (const std::int64_t n : {0, 1, 40000, 17, 3, 100000, 64, 5}) {
    params.push_back(values(n, -1, params.size() % 2 == 0 ? DType::Float32 : DType::Float64));
  }
  for (int i = 0; i < 300; ++i) params.push_back(values(i % 7, -1, DType::Float32));
  const Made optimizer = row.make(params);
  for (int k = 0; k < 3; ++k) {
    for (const Tensor& p : params) p.set_grad(values(p.numel(), k, p.dtype()));
    optimizer->step();
  }
  for (const NamedTensor& t : optimizer->state().tensors) params.push_back(t.tensor);
  return params;
}

TEST_F(Updates, NO_ASAN_HaveTheSameBitsAtAnyThreadCountAndOnEveryIsa) {
  std::vector<int> counts = several_threads();
  counts.insert(counts.begin(), 1);
  for (const GoldenOptimizer& row : golden_optimizers()) {
    kernels::set_active_isa(Isa::Scalar);
    set_num_threads(1);
    const Tensors once = run_many(row);
    for (const Isa isa : kernels::available_isas()) {
      kernels::set_active_isa(isa);
      for (const int threads : counts) {
        if (threads > 1 && isa != kernels::available_isas().back()) continue;
        set_num_threads(threads);
        const Tensors again = run_many(row);
        ASSERT_EQ(again.size(), once.size());
        for (std::size_t i = 0; i < once.size(); ++i) {
          ASSERT_TRUE(same_bits(once[i], again[i]))
              << row.name << ' ' << isa_name(isa) << ' ' << threads << " threads, tensor " << i;
        }
      }
    }
  }
}

TEST_F(Updates, OfAnyLayoutAreThoseOfContiguousTensors) {
  for (const GoldenOptimizer& row : golden_optimizers()) {
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      constexpr std::int64_t kRows = 31;
      constexpr std::int64_t kCols = 45;
      const Tensor plain = values(kRows * kCols, -1, dtype).reshape({kRows, kCols});
      const Tensor turned = permute_dims(plain, {1, 0}).clone().permute({1, 0});
      const Tensor wide = zeros({kRows, 2 * kCols}, dtype);
      const Tensor sparse =
          Tensor::view_of(wide.storage(), dtype, Layout{{kRows, kCols}, {2 * kCols, 2}, 0}, "test");
      sparse.copy_(plain);
      std::vector<char> bytes(plain.nbytes() + 1);
      const Tensor odd = Tensor::from_blob(bytes.data() + 1, plain.shape(), dtype);
      odd.copy_(plain);
      ASSERT_FALSE(turned.is_contiguous());
      const Tensors params = {plain, turned, sparse, odd};
      const Made optimizer = row.make(params);
      for (int k = 0; k < 3; ++k) {
        const Tensor g = values(kRows * kCols, k, dtype).reshape({kRows, kCols});
        plain.set_grad(g);
        turned.set_grad(g);
        sparse.set_grad(permute_dims(g, {1, 0}).clone().permute({1, 0}));
        odd.set_grad(g);
        optimizer->step();
      }
      for (const Tensor& t : params) EXPECT_TRUE(same_bits(t, plain)) << row.name;
      // The gaps between the elements are unchanged.
      const std::vector<double> all = doubles(wide);
      for (std::size_t i = 1; i < all.size(); i += 2) ASSERT_EQ(all[i], 0);
    }
  }
}

TEST_F(Updates, OfHalfPrecisionAreRoundedOnceFromFloat32) {
  for (const GoldenOptimizer& row : golden_optimizers()) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const Tensor p = values(1000, -1, dtype);
      const Made optimizer = row.make({p});
      Tensor single = astype(p, DType::Float32);
      for (int k = 0; k < 3; ++k) {
        const Tensor g = values(1000, k, dtype);
        // A float32 step from the same parameter, gradient and state.
        const Made other = row.make({single});
        State state = optimizer->state();
        if (k > 0) other->load_state(state);
        single.set_grad(astype(g, DType::Float32));
        other->step();
        p.set_grad(g);
        optimizer->step();
        ASSERT_TRUE(same_bits(p, astype(single, dtype))) << row.name << ' ' << name(dtype);
        single = astype(p, DType::Float32);
      }
      for (const NamedTensor& t : optimizer->state().tensors) {
        EXPECT_EQ(t.tensor.dtype(), DType::Float32);
      }
    }
  }
}

TEST_F(Updates, RepeatedGradientsAndGradientsInTheParameterItself) {
  const Tensor p = values(12, -1, DType::Float32);
  const Tensor q = values(12, -1, DType::Float32);
  optim::SGD optimizer({p, q}, {.lr = 0.5});
  const Tensor one = Tensor::of<float>({2});
  p.set_grad(one.expand({12}));
  q.set_grad(q.detach());  // the same memory
  const std::vector<double> before = doubles(p);
  optimizer.step();
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(doubles(p)[i], static_cast<float>(before[i] - 1));
    EXPECT_EQ(doubles(q)[i], before[i] / 2);
  }
}

TEST_F(Updates, NaNGradientsReachTheirElementsAndNoOther) {
  for (const GoldenOptimizer& row : golden_optimizers()) {
    const Tensor p = values(40, -1, DType::Float32);
    const Tensor clean = values(40, -1, DType::Float32);
    const Made optimizer = row.make({p, clean});
    std::vector<float> g = values(40, 0, DType::Float32).to_vector<float>();
    clean.set_grad(Tensor::of(g, {40}));
    g[3] = static_cast<float>(kNaN);
    g[39] = static_cast<float>(kNaN);
    p.set_grad(Tensor::of(g, {40}));
    optimizer->step();
    for (std::size_t i = 0; i < 40; ++i) {
      const bool nan = i == 3 || i == 39;
      EXPECT_EQ(std::isnan(doubles(p)[i]), nan) << row.name << ' ' << i;
      if (!nan) {
        EXPECT_EQ(doubles(p)[i], doubles(clean)[i]) << row.name;
      }
    }
  }
}

TEST_F(Updates, NoWeightDecayLeavesInfiniteParametersInfinite) {
  const Tensor p = Tensor::of<float>({static_cast<float>(kInf), 1});
  optim::SGD optimizer({p}, {.lr = 0.5});
  p.set_grad(Tensor::of<float>({1, 1}));
  optimizer.step();
  EXPECT_EQ(doubles(p)[0], kInf);
  EXPECT_EQ(doubles(p)[1], 0.5);
}

TEST_F(Updates, CenteredNeverTakesTheRootOfLessThanNothing) {
  // For a constant gradient the means of gradient and square agree: their difference is only
  // rounding.
  const Tensor p = zeros({64}, DType::Float32);
  optim::RMSprop optimizer({p}, {.lr = 1e-3, .alpha = 0.5, .eps = 1e-3, .centered = true});
  for (int k = 0; k < 200; ++k) {
    p.set_grad(values(64, 0, DType::Float32));
    optimizer.step();
  }
  for (const double v : doubles(p)) EXPECT_TRUE(std::isfinite(v));
}

TEST_F(Updates, SkipWhatHasNoGradientAndCountStepsPerParameter) {
  const Tensor p = values(5, -1, DType::Float64);
  const Tensor late = values(5, -1, DType::Float64);
  const Tensor alone = values(5, -1, DType::Float64);
  const Tensor never = values(5, -1, DType::Float64);
  optim::Adam optimizer({p, late, never});
  optim::Adam other({alone});
  for (int k = 0; k < 6; ++k) {
    p.set_grad(values(5, k, DType::Float64));
    if (k >= 2) {
      late.set_grad(values(5, k, DType::Float64));
      alone.set_grad(values(5, k, DType::Float64));
    }
    optimizer.step();
    other.step();
  }
  EXPECT_TRUE(same_bits(late, alone));
  EXPECT_TRUE(same_bits(never, values(5, -1, DType::Float64)));
  EXPECT_EQ(optimizer.state().values.at("0.step"), "6");
  EXPECT_EQ(optimizer.state().values.at("1.step"), "4");
  EXPECT_EQ(optimizer.state().values.at("2.step"), "0");
}

TEST_F(Updates, AreNotRecordedAndCountAsWrites) {
  const Tensor p = values(4, -1, DType::Float64).requires_grad_();
  optim::SGD optimizer({p}, {.lr = 0.1, .momentum = 0.9});
  const Tensor loss = sum(p * p);
  const std::uint32_t version = p.version();
  p.set_grad(values(4, 0, DType::Float64));
  optimizer.step();
  EXPECT_TRUE(p.is_leaf());
  EXPECT_TRUE(p.requires_grad());
  EXPECT_GT(p.version(), version);
  // The product saved p, which was overwritten since.
  EXPECT_THROW(loss.backward(), GradError);
}

TEST_F(Updates, TrainALine) {
  const Tensor w = zeros({3}, DType::Float64).requires_grad_();
  optim::AdamW optimizer({w}, {.lr = 0.05, .weight_decay = 0});
  Generator generator(1);
  const Tensor x = normal({100, 3}, 0, 1, DType::Float64, &generator);
  const Tensor truth = Tensor::of<double>({1, -2, 0.5});
  const Tensor y = matmul(x, truth);
  for (int k = 0; k < 400; ++k) {
    const Tensor error = matmul(x, w) - y;
    mean(error * error).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(doubles(w)[i], doubles(truth)[i], 1e-3);
}

}  // namespace
}  // namespace baregrad
