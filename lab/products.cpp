// Operands, peers and records of products.
#include "lab/products.h"

#include <cmath>
#include <limits>

#include "backends/cpu/gemm/gemm.h"
#include "baregrad/ops.h"
#include "bench/ceilings.h"

namespace baregrad::lab {
namespace {

Tensor operand(DType dtype, std::uint64_t seed, std::int64_t rows, std::int64_t cols) {
  Tensor matrix = empty({rows, cols}, dtype);
  const auto count = static_cast<std::uint32_t>(rows * cols);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (dtype == DType::Float64) {
      matrix.data<double>()[i] = wide_operand_number(seed, i);
    } else {
      matrix.data<float>()[i] = operand_number(seed, i);
    }
  }
  return matrix;
}

/// JSON has neither NaN nor infinity.
double finite(double error) {
  return std::isfinite(error) ? error : std::numeric_limits<double>::max();
}

}  // namespace

float operand_number(std::uint64_t seed, std::uint32_t index) {
  // 2^32 divided by the golden ratio: spreads consecutive numbers.
  constexpr std::uint32_t kGolden = 0x9e3779b9;
  std::uint32_t hash = (index + static_cast<std::uint32_t>(seed) * 0x01000193u + 1) * kGolden;
  hash = (hash ^ (hash >> 16)) * kGolden;
  hash = (hash ^ (hash >> 15)) * kGolden;
  return static_cast<float>(hash >> 8) / 8388608.0f - 1.0f;
}

double wide_operand_number(std::uint64_t seed, std::uint32_t index) {
  constexpr std::uint64_t kElsewhere = 1000;
  return operand_number(seed, index) + 0x1p-24 * operand_number(seed + kElsewhere, index);
}

Product::Product(const bench::MatmulCase& product, std::uint64_t product_seed)
    : about(product),
      seed(product_seed),
      a(operand(about.dtype, seed, about.m, about.k)),
      b(operand(about.dtype, seed + 1, about.k, about.n)),
      truth(about, a, b) {}

void Field::add_ours() {
  const auto once = [this] { return matmul(product_.a, product_.b); };
  const Tensor c = once();
  errors_.push_back(product_.about.dtype == DType::Float64
                        ? product_.truth.max_error(c.data<double>())
                        : product_.truth.max_error(c.data<float>()));
  contenders_.push_back(contender_once(bench::kOurs, [once] { bench::keep(once()); }));
}

void Field::add_kernel() {
  kernels::GemmCall call;
  const bench::MatmulCase& about = product_.about;
  call.m = about.m;
  call.n = about.n;
  call.k = about.k;
  call.a = {product_.a.data<float>(), about.k, 1};
  call.b = {product_.b.data<float>(), about.n, 1};
  call.c_row_stride = about.n;
  call.c_col_stride = 1;
  add<float>(bench::kOurs, [call](float* c) {
    kernels::GemmCall to = call;
    to.c = c;
    kernels::gemm(to);
  });
}

template <class T, class Call>
void Field::add_gemm(const std::string& name, Call call, bench::peers::Gemv<T> vector) {
  const auto m = static_cast<int>(product_.about.m);
  const auto n = static_cast<int>(product_.about.n);
  const auto k = static_cast<int>(product_.about.k);
  const T* a = product_.a.data<T>();
  const T* b = product_.b.data<T>();
  if (m == 1 && vector != nullptr) {
    add<T>(name, [=](T* c) { bench::peers::gemv(vector, m, n, k, a, b, c); });
  } else {
    add<T>(name, [=](T* c) { bench::peers::gemm(call, m, n, k, a, b, c); });
  }
}

bool Field::add_blas(const bench::peers::Blas& blas) {
  const bool wide = product_.about.dtype == DType::Float64;
  if (wide && blas.dgemm == nullptr) return false;
  if (!bench::peers::set_threads(blas, product_.about.threads)) return false;
  if (wide) {
    add_gemm<double>(blas.name, blas.dgemm, blas.dgemv);
  } else if (blas.sgemm != nullptr) {
    add_gemm<float>(blas.name, blas.sgemm, blas.sgemv);
  } else {
    add_gemm<float>(blas.name, blas.dnnl_sgemm, nullptr);
  }
  return true;
}

void Field::add_python(PythonPeer* peer, const std::string& library) {
  if (peer == nullptr || !peer->has("numpy") || !peer->has(library)) return;
  Json question = {{"do", "product"},       {"library", library},
                   {"m", product_.about.m}, {"n", product_.about.n},
                   {"k", product_.about.k}, {"dtype", std::string(name(product_.about.dtype))},
                   {"seed", product_.seed}, {"allocate", output_ == Output::Allocated}};
  errors_.push_back(peer->ask(question).at("max_error").get<double>());
  question["do"] = "time_product";
  contenders_.push_back(
      {library, [peer, question] { return peer->ask(question).at("ns").get<double>(); }});
}

void Field::record(Notebook& notebook, const Turns& turns, const Json& more) const {
  const std::vector<Timing> timings = take_turns(contenders_, turns);
  const bench::MatmulCase& about = product_.about;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    Json fields = {{"name", contenders_[i].name},
                   {"m", about.m},
                   {"n", about.n},
                   {"k", about.k},
                   {"dtype", std::string(name(about.dtype))},
                   {"threads", about.threads},
                   {"gflop_per_s", about.flops() / timings[i].median_ns},
                   {"max_error", finite(errors_[i])},
                   {"tolerance", product_.truth.tolerance()}};
    fields.update(to_json(timings[i]));
    fields.update(more);
    notebook.add("product", fields);
  }
}

std::chrono::milliseconds settle_time(const Notebook& notebook, int threads) {
  if (threads == 1) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(notebook.quick() ? 20 : 40);
}

void record_libraries(Notebook& notebook, const bench::peers::OpenedBlas& opened) {
  for (const bench::peers::Blas& blas : opened.found) {
    notebook.add("library", {{"name", blas.name}, {"version", blas.version}});
  }
  for (const std::string& line : opened.absent) {
    const std::size_t space = line.find(' ');
    notebook.absent(line.substr(0, space), line.substr(line.find('(')));
  }
  notebook.note(
      "Operands and results of all but NumPy and PyTorch lie in the engine's memory, where large "
      "blocks ask for huge pages; NumPy and PyTorch take memory of their own.");
}

void record_peak(Notebook& notebook, DType dtype, int threads, double seconds) {
  const int bits = dtype == DType::Float64 ? 64 : 32;
  notebook.add("ceiling", {{"dtype", std::string(name(dtype))},
                           {"threads", threads},
                           {"gflop_per_s", bench::fma_gflop_per_s(bits, threads, seconds)}});
}

PythonPeer* LazyPython::get(Notebook& notebook, int threads) {
  const bool known_absent = threads_ != 0 && peer_ == nullptr;
  if (threads == threads_ || known_absent) return peer_.get();
  const bool first = threads_ == 0;
  threads_ = threads;
  peer_.reset();
  peer_ = PythonPeer::start(notebook, threads);
  for (const char* library : {"numpy", "torch"}) {
    if (!first || peer_ == nullptr || !peer_->has(library)) continue;
    notebook.add("library", {{"name", library}, {"version", peer_->version(library)}});
  }
  return peer_.get();
}

}  // namespace baregrad::lab
