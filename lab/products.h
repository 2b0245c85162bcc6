// Products of matrices that several contenders compute in turns, from the same numbers, each
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

/// Number `index` of operand `seed`, in [-1, 1): a hash, which Python computes as well
/// (baregrad/lab/peer.py), so that all libraries multiply the same matrices.
float operand_number(std::uint64_t seed, std::uint32_t index);
/// The same with more bits: products of float32 operands would be exact in float64, and say nothing
/// about rounding.
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

/// Where C goes.
enum class Output {
  Reused,    ///< into memory that is there already, the same for all
  Allocated  ///< into memory that the timed call takes, and gives back
};

/// Those who compute a product. The product must outlive it.
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

  /// The engine's kernel without tensors around it, of float32.
  void add_kernel();
  /// The engine as its users call it: tensors, and a result of its own.
  void add_ours();
  /// Its matrix product, or its product of vector and matrix where A has one row. False where the
  /// library has no such product or cannot use so many threads.
  bool add_blas(const bench::peers::Blas& blas);
  /// NumPy or PyTorch; nothing where it is not there. Operands are NumPy's in both.
  void add_python(PythonPeer* peer, const std::string& library);

  /// They take turns: a record of kind "product" for each, with `more` in it.
  void record(Notebook& notebook, const Turns& turns, const Json& more = Json::object()) const;

 private:
  /// From where the engine's own results come, so that pages are alike for all.
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

/// Between turns on several threads: longer than idle workers of any library spin, see
/// bench/peers_blas.cpp; half of that where a look is enough. Nothing on one thread.
std::chrono::milliseconds settle_time(const Notebook& notebook, int threads);

/// One record of kind "library" for each that is there, of kind "absent" for each that is not.
void record_libraries(Notebook& notebook, const bench::peers::OpenedBlas& opened);

/// The greatest rate of multiply-adds on so many threads, measured now: a record of kind "ceiling".
/// Pages take the best of a run.
void record_peak(Notebook& notebook, DType dtype, int threads, double seconds);

/// A Python started when it is first needed, so that a run that is resumed does not wait for it.
class LazyPython {
 public:
  /// One whose libraries use so many threads; the one before it ends. Null when there is none,
  /// which is recorded once. To be asked inside of a part.
  PythonPeer* get(Notebook& notebook, int threads);

 private:
  int threads_ = 0;  // of the peer; 0: nobody asked yet
  std::unique_ptr<PythonPeer> peer_;
};

}  // namespace baregrad::lab
