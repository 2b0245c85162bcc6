// Matrix products: ours against the BLAS libraries of this machine.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bench/benches.h"
#include "bench/matmul_truth.h"
#include "bench/peers_blas.h"

namespace baregrad::bench {
namespace {

using peers::Blas;

// Longer than the workers of any peer spin after their last call (peers_blas.cpp).
constexpr std::chrono::milliseconds kSettle{40};

struct FreeMemory {
  void operator()(void* block) const noexcept { std::free(block); }
};
template <class T>
using Buffer = std::unique_ptr<T[], FreeMemory>;

/// A peer allocates and frees its output with malloc in the timed call, as ours does.
template <class T>
Buffer<T> allocate(std::int64_t n) {
  Buffer<T> block(static_cast<T*>(std::malloc(static_cast<std::size_t>(n) * sizeof(T))));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

/// The same inputs for all candidates.
struct Product {
  explicit Product(const MatmulCase& product)
      : about(product),
        a(inputs(1, product.m, product.k)),
        b(inputs(2, product.k, product.n)),
        truth(product, a, b) {}

  Tensor inputs(std::uint64_t seed, std::int64_t rows, std::int64_t cols) const {
    Generator generator(seed);
    const Dims shape = about.batch == 1 ? Dims{rows, cols} : Dims{about.batch, rows, cols};
    return astype(
        uniform(shape, -1, 1, about.dtype == DType::Float64 ? DType::Float64 : DType::Float32,
                &generator),
        about.dtype);
  }
  std::int64_t outputs() const { return about.batch * about.m * about.n; }

  MatmulCase about;
  Tensor a;
  Tensor b;
  MatmulTruth truth;
};

/// Throws when the result is wrong.
template <class T>
double checked_error(const Product& product, const std::string& who, const T* c) {
  const double error = product.truth.max_error(c);
  if (error <= product.truth.tolerance()) return error;
  throw ValueError("bench matmul: the result of " + who + " for " + shape_text(product.about) +
                   " is off by " + std::to_string(error) + " of |A| |B|: not the same product");
}

/// Adds candidates to a row. Each is checked once before it is timed.
class Field {
 public:
  Field(const Product& product, Row& row) : product_(product), row_(row) {}

  /// `write(c)` computes the whole product into c.
  template <class T, class Write>
  void add(const std::string& who, Write write) {
    const std::int64_t n = product_.outputs();
    const auto once = [n, write] {
      Buffer<T> c = allocate<T>(n);
      write(c.get());
      return c;
    };
    Candidate added = candidate(who, [once] { keep(once()); });
    added.max_error = checked_error(product_, who, once().get());
    row_.candidates.push_back(std::move(added));
  }

  /// A result in the engine's own memory.
  template <class Once>
  void add_tensor(const std::string& who, Once once) {
    Candidate added = candidate(who, [once] { keep(once()); });
    const Tensor c = once();
    switch (c.dtype()) {
      case DType::Float64:
        added.max_error = checked_error(product_, who, c.data<double>());
        break;
      case DType::Float16:
        added.max_error = checked_error(product_, who, c.data<Float16>());
        break;
      case DType::BFloat16:
        added.max_error = checked_error(product_, who, c.data<BFloat16>());
        break;
      default:
        added.max_error = checked_error(product_, who, c.data<float>());
    }
    row_.candidates.push_back(std::move(added));
  }

 private:
  const Product& product_;
  Row& row_;
};

struct Sizes {
  int m, n, k, batch;
  explicit Sizes(const MatmulCase& c)
      : m(static_cast<int>(c.m)),
        n(static_cast<int>(c.n)),
        k(static_cast<int>(c.k)),
        batch(static_cast<int>(c.batch)) {}
};

/// Calls body(a, b, c) for each product. The products of a batch are divided among threads, one
/// thread per product: the best that a user can do with a library without a batched call.
template <class In, class Out, class Body>
void for_each_product(const Sizes& s, int threads, const In* a, const In* b, Out* c, Body body) {
  const std::int64_t a_step = std::int64_t{s.m} * s.k;
  const std::int64_t b_step = std::int64_t{s.k} * s.n;
  const std::int64_t c_step = std::int64_t{s.m} * s.n;
  // A single product uses the library's own threads.
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && s.batch > 1)
  for (int p = 0; p < s.batch; ++p) body(a + p * a_step, b + p * b_step, c + p * c_step);
}

/// The candidates of one library for a product of type T.
template <class T, class Call>
void add_gemm(Field& field, const Product& product, const Blas& blas, Call call,
              peers::Gemv<T> vector, peers::GemmBatch<T> batched) {
  const Sizes s(product.about);
  const int threads = product.about.threads;
  const T* a = product.a.data<T>();
  const T* b = product.b.data<T>();
  if (s.batch == 1) {
    field.add<T>(blas.name, [=](T* c) { peers::gemm(call, s.m, s.n, s.k, a, b, c); });
    if (vector != nullptr && (s.m == 1 || s.n == 1)) {
      field.add<T>(blas.name + " gemv", [=](T* c) { peers::gemv(vector, s.m, s.n, s.k, a, b, c); });
    }
  } else if (batched != nullptr) {
    field.add<T>(blas.name + " batch", [=](T* c) {
      batched(peers::kRowMajor, peers::kNoTrans, peers::kNoTrans, s.m, s.n, s.k, 1, a, s.k,
              s.m * s.k, b, s.n, s.k * s.n, 0, c, s.n, s.m * s.n, s.batch);
    });
  } else {
    field.add<T>(blas.name + " loop", [=](T* c) {
      for_each_product(s, threads, a, b, c, [&](const T* x, const T* y, T* z) {
        peers::gemm(call, s.m, s.n, s.k, x, y, z);
      });
    });
  }
}

/// 16-bit operands: converted to float by our own conversion, multiplied, converted back.
template <class Call>
void add_via_float(Field& field, const Product& product, const Blas& blas, Call call) {
  const Sizes s(product.about);
  const int threads = product.about.threads;
  const Tensor& a = product.a;
  const Tensor& b = product.b;
  const Dims shape = s.batch == 1 ? Dims{s.m, s.n} : Dims{s.batch, s.m, s.n};
  field.add_tensor(blas.name + " via f32", [=] {
    const Tensor x = astype(a, DType::Float32);
    const Tensor y = astype(b, DType::Float32);
    const Tensor z = empty(shape);
    for_each_product(s, threads, x.data<float>(), y.data<float>(), z.data<float>(),
                     [&](const float* from_x, const float* from_y, float* to) {
                       peers::gemm(call, s.m, s.n, s.k, from_x, from_y, to);
                     });
    return astype(z, a.dtype());
  });
}

template <class T>
void add_half(Field& field, const Product& product, const Blas& blas, peers::GemmHalf call) {
  const Sizes s(product.about);
  const int threads = product.about.threads;
  const auto* a = reinterpret_cast<const std::uint16_t*>(product.a.data<T>());
  const auto* b = reinterpret_cast<const std::uint16_t*>(product.b.data<T>());
  field.add<float>(blas.name + " to f32", [=](float* c) {
    for_each_product(s, threads, a, b, c,
                     [&](const std::uint16_t* x, const std::uint16_t* y, float* z) {
                       call(peers::kRowMajor, peers::kNoTrans, peers::kNoTrans, s.m, s.n, s.k, 1, x,
                            s.k, y, s.n, 0, z, s.n);
                     });
  });
}

void add_peer(Field& field, const Product& product, const Blas& blas) {
  switch (product.about.dtype) {
    case DType::Float64:
      if (blas.dgemm != nullptr) {
        add_gemm<double>(field, product, blas, blas.dgemm, blas.dgemv, blas.dgemm_batch);
      }
      return;
    case DType::Float32:
      if (blas.sgemm != nullptr) {
        add_gemm<float>(field, product, blas, blas.sgemm, blas.sgemv, blas.sgemm_batch);
      } else {
        add_gemm<float>(field, product, blas, blas.dnnl_sgemm, nullptr, nullptr);
      }
      return;
    case DType::Float16:
      if (blas.gemm_f16 != nullptr) add_half<Float16>(field, product, blas, blas.gemm_f16);
      break;
    default:
      if (blas.gemm_bf16 != nullptr) add_half<BFloat16>(field, product, blas, blas.gemm_bf16);
  }
  if (blas.sgemm != nullptr) {
    add_via_float(field, product, blas, blas.sgemm);
  } else {
    add_via_float(field, product, blas, blas.dnnl_sgemm);
  }
}

void measure_product(Session& session, const MatmulCase& about,
                     const std::vector<Blas>& libraries) {
  session.announce(shape_text(about) + ", checking");
  const ThreadScope scope(about.threads);
  const Product product(about);
  Row row;
  row.name = about.batch == 1 ? "matmul" : "matmul, batched";
  row.dtype = std::string(name(about.dtype));
  row.shape = shape_text(about);
  row.threads = about.threads;
  row.flops = about.flops();
  row.fma_bits = about.dtype == DType::Float64 ? 64 : 32;
  row.settle = kSettle;
  Field field(product, row);
  field.add_tensor(kOurs, [&] { return matmul(product.a, product.b); });
  for (const Blas& blas : libraries) {
    // A loop over a batch uses our threads, a batched call the library's.
    const bool batched_call = itemsize(about.dtype) >= sizeof(float) && blas.sgemm_batch != nullptr;
    const bool own_threads = about.batch > 1 && !batched_call;
    if (peers::set_threads(blas, own_threads ? 1 : about.threads)) {
      add_peer(field, product, blas);
    } else {
      session.note(blas.name + " cannot use " + std::to_string(about.threads) + " threads");
    }
  }
  session.measure(row);
}

std::vector<MatmulCase> chosen(const Session& session) {
  const Options& options = session.options();
  std::vector<MatmulCase> all = options.products;
  if (all.empty()) {
    for (const std::int64_t size : options.sizes) {
      all.push_back({.dtype = options.dtype});
      try {
        set_square(all.back(), size);
      } catch (const ValueError& error) {
        throw ValueError(std::string("bench matmul: --sizes: ") + error.what());
      }
    }
  }
  if (all.empty()) all = usual_matmuls(options.dtype, options.quick);
  for (MatmulCase& product : all) {
    if (product.threads == 0) product.threads = session.threads();
    // Checked first: a system that overcommits memory would kill the program later.
    if (product.bytes() > static_cast<double>(session.machine().memory_bytes)) {
      throw ValueError("bench matmul: " + shape_text(product) + " of " +
                       std::string(name(product.dtype)) +
                       " takes more memory than this machine has");
    }
  }
  return all;
}

}  // namespace

void bench_matmul(Session& session) {
  const std::vector<MatmulCase> products = chosen(session);
  const std::vector<std::string>& wanted = session.options().peers;
  const peers::OpenedBlas opened = peers::open_blas(wanted);
  if (!wanted.empty() && !opened.absent.empty()) {
    throw IoError("bench matmul: " + opened.absent.front());
  }
  for (const Blas& blas : opened.found) {
    session.note(blas.name + ": " + blas.version + ", " + blas.path);
  }
  for (const std::string& absent : opened.absent) session.note(absent);
  bool has_f64 = false;
  for (const MatmulCase& product : products) has_f64 |= product.dtype == DType::Float64;
  for (const Blas& blas : opened.found) {
    if (has_f64 && blas.dgemm == nullptr) session.note(blas.name + " has no f64");
  }
  for (const MatmulCase& product : products) measure_product(session, product, opened.found);
}

}  // namespace baregrad::bench
