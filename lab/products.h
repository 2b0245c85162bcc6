// Matrix products computed by several contenders in turns, from the same numbers; each result is
// checked against sums in a wider type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baregrad/allocator.h"
#include "baregrad/tensor.h"
#include "bench/harness.h"
#include "bench/matmul_truth.h"
#include "bench/peers_blas.h"
#include "lab/python_peer.h"
#include "lab/timing.h"

namespace baregrad::lab {

/// Number `index` of operand `seed`, in [-1, 1). It is a hash, which Python computes as well
/// (baregrad/lab/peer.py), so that all libraries multiply the same matrices.
float operand_number(std::uint64_t seed, std::uint32_t index);
/// The same with more bits: products of float32 numbers are exact in float64, and would not show
/// rounding.
double wide_operand_number(std::uint64_t seed, std::uint32_t index);

/// The operands of one product and the true values of its result.
struct Product {
  Product(const bench::MatmulCase& product, std::uint64_t product_seed);

  bench::MatmulCase about;
  std::uint64_t seed;
  Tensor a;
  Tensor b;
  bench::MatmulTruth truth;
};

/// Where C is written.
enum class Output {
  Reused,    ///< into existing memory, the same for all
  Allocated  ///< into memory that the timed call allocates and frees
};

/// The contenders for a product. The product must outlive the field.
class Field {
 public:
  Field(const Product& product, Output output) : product_(product), output_(output) {}

  /// `write(c)` computes all of C, row-major.
  template <class T, class Write>
  void add(const std::string& name, Write write) {
    const auto bytes = static_cast<std::size_t>(product_.about.m * product_.about.n) *
                       itemsize(product_.about.dtype);
    Memory checked = allocate(bytes);
    write(static_cast<T*>(checked.get()));
    errors_.push_back(product_.truth.max_error(static_cast<const T*>(checked.get())));
    if (output_ == Output::Reused) {
      std::shared_ptr<void> c = std::move(checked);
      contenders_.push_back(contender_once(name, [c, write] {
        write(static_cast<T*>(c.get()));
        bench::keep(c);
      }));
    } else {
      contenders_.push_back(contender_once(name, [bytes, write] {
        const Memory c = allocate(bytes);
        write(static_cast<T*>(c.get()));
        bench::keep(c);
      }));
    }
  }

  /// The engine's float32 kernel without tensors.
  void add_kernel();
  /// The engine's public function: tensors, and a newly allocated result.
  void add_ours();
  /// The library's matrix product, or its matrix-vector product where A has one row. False where
  /// the library has no such product or cannot use so many threads.
  bool add_blas(const bench::peers::Blas& blas);
  /// NumPy or PyTorch; does nothing if it is not installed. Both use NumPy arrays as operands.
  void add_python(PythonPeer* peer, const std::string& library);

  /// Times them in turns: a record of kind "product" for each, with `more` added.
  void record(Notebook& notebook, const Turns& turns, const Json& more = Json::object()) const;

 private:
  /// Memory from the source of the engine's results, so that all contenders have the same kind of
  /// pages.
  struct GiveBack {
    Allocator* allocator;
    std::size_t bytes;
    void operator()(void* memory) const noexcept { allocator->deallocate(memory, bytes); }
  };
  using Memory = std::unique_ptr<void, GiveBack>;

  static Memory allocate(std::size_t bytes) {
    Allocator& allocator = current_allocator();
    return Memory(allocator.allocate(bytes), GiveBack{&allocator, bytes});
  }
  template <class T, class Call>
  void add_gemm(const std::string& name, Call call, bench::peers::Gemv<T> vector);

  const Product& product_;
  Output output_;
  std::vector<Contender> contenders_;
  std::vector<double> errors_;
};

/// The pause between turns on several threads: longer than the idle workers of any library spin
/// (bench/peers_blas.cpp), or half of that in a quick run. Zero on one thread.
std::chrono::milliseconds settle_time(const Notebook& notebook, int threads);

/// One record of kind "library" for each that is present, and of kind "absent" for each that is
/// not.
void record_libraries(Notebook& notebook, const bench::peers::OpenedBlas& opened);

/// Measures the ceiling of multiply-adds with so many threads now: a record of kind "ceiling".
/// Pages take the best of a run.
void record_peak(Notebook& notebook, DType dtype, int threads, double seconds);

/// A Python process that is started on first use, so that a resumed run does not wait for it.
class LazyPython {
 public:
  /// A process whose libraries use so many threads; the previous one ends. Null when there is none,
  /// which is recorded once. Call it inside a part.
  PythonPeer* get(Notebook& notebook, int threads);

 private:
  int threads_ = 0;  // of the peer; 0: not started yet
  std::unique_ptr<PythonPeer> peer_;
};

}  // namespace baregrad::lab
