// Members of Tensor, and tensors as text.
#include <array>
#include <memory>

#include "baregrad/error.h"
#include "baregrad/print.h"
#include "core/visit.h"
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

/// Bounds the number of elements that are printed, not the tensor's: the middle is omitted.
bool printable(const Tensor& x) {
  std::int64_t shown = 1;
  for (const std::int64_t size : x.shape()) {
    shown *= std::min<std::int64_t>(size, 7);
    if (shown > 20000) return false;
  }
  return true;
}

void add_making(std::vector<Row>& rows) {
  const std::vector<Row> making = {
      {"Tensor::view_of",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         if (!x.defined()) return {Tensor::view_of({}, int8, Layout{}, "view_of")};
         const Dims shape = s.integers(static_cast<int>(s.below(4)));
         const Dims strides = s.integers(s.chance(95) ? shape.size() : 2);
         const Layout layout{shape, strides, s.chance(70) ? s.below(3) : s.integer()};
         // Not as bool: the bytes are arbitrary.
         const DType dtype = s.one_of({int8, int16, float32, float64});
         return {Tensor::view_of(x.storage(), dtype, layout, "view_of")};
       }},
      {"Tensor::allocate",
       [](Source& s) -> Results {
         const Dims shape = s.shape();
         return {Tensor::allocate(shape, s.dtype(), "allocate")};
       },
       {},
       3,
       true},
      {"Tensor::from_blob",
       [](Source& s) -> Results {
         const auto block = std::make_shared<std::array<char, 8 * 4096>>();
         void* data = s.chance(95) ? block->data() : nullptr;
         const Dims shape = s.shape();
         const DType dtype = s.dtype();
         const Tensor out = Tensor::from_blob(data, shape, dtype, [block](void*) {});
         // The caller guarantees the memory: bytes beyond the block must not be read here.
         return out.nbytes() <= block->size() ? Results{out} : Results{};
       }},
      {"Tensor::from_blob(strides)",
       [](Source& s) -> Results {
         const auto block = std::make_shared<std::array<char, 65536>>();
         const Dims shape = s.chance(50) ? s.integers(static_cast<int>(s.below(4))) : s.shape();
         const Dims strides = s.integers(s.chance(95) ? shape.size() : 2);
         const DType dtype = s.dtype();
         Tensor::from_blob(s.chance(95) ? block->data() + 32768 : nullptr, shape, strides, dtype,
                           [block](void*) {});
         return {};
       }},
      {"Tensor::of(values, shape)",
       [](Source& s) -> Results {
         const std::vector<float> values(6, 1.5F);
         const Dims shape = s.reshaping(Tensor::of(values, {6}));
         return {Tensor::of(values, shape)};
       }},
      {"Tensor::scalar",
       [](Source& s) -> Results {
         const Scalar value = s.scalar();
         return {Tensor::scalar(value, s.dtype_option())};
       }},
  };
  rows.insert(rows.end(), making.begin(), making.end());
}

void add_reading(std::vector<Row>& rows) {
  const std::vector<Row> reading = {
      {"Tensor::size",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t size = x.size(s.axis(ndim_of(x)));
         if (size < 0) throw std::logic_error("negative size");
         return {};
       }},
      {"Tensor::data",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         if (s.chance(50)) {
           x.data<float>();
         } else {
           x.data<std::int64_t>();
         }
         return {};
       }},
      {"Tensor::item",
       [](Source& s) -> Results {
         Tensor x = s.tensor();
         while (x.defined() && x.ndim() > 0 && x.size(0) > 0 && s.chance(75)) x = x[0];
         x.item();
         x.item<bool>();
         x.item<std::int8_t>();
         x.item<std::uint64_t>();
         x.item<double>();
         return {};
       }},
      {"Tensor::to_vector",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         // Sizes between what always works and what is always refused depend on the machine's
         // memory.
         if (x.defined() && x.nbytes() > 100000 && x.nbytes() >> 46 == 0) return {};
         if (!x.defined() || s.chance(10)) {
           x.to_vector<std::int32_t>();
           return {};
         }
         visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
           const auto values = x.to_vector<T>();
           if (std::ssize(values) != x.numel()) throw std::logic_error("to_vector: wrong length");
         });
         return {};
       }},
      {"Tensor::copy_to",
       [](Source& s) -> Results {
         const Tensor x = s.tensor(Size::Bounded);
         std::vector<char> out(x.defined() ? x.nbytes() : 0);
         x.copy_to(out.data());
         return {};
       }},
      {"describe",
       [](Source& s) -> Results {
         if (describe(s.tensor()).empty()) throw std::logic_error("describe: empty");
         return {};
       },
       {},
       1,
       false,
       true},
      {"to_string",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         PrintOptions options;
         if (x.defined() && !printable(x)) return {};
         if ((!x.defined() || x.numel() < 5000) && s.chance(50)) {
           options.precision =
               static_cast<int>(s.one_of<std::int64_t>({-1, 0, 1, 8, 17, 400, INT32_MAX}));
           options.threshold = s.integer();
           options.edge_items = static_cast<int>(s.one_of<std::int64_t>({-1, 0, 1, 3, INT32_MAX}));
           options.line_width =
               static_cast<int>(s.one_of<std::int64_t>({INT32_MIN, -1, 0, 1, 75, INT32_MAX}));
           options.suppress = s.flag();
           s.note("precision " + std::to_string(options.precision) + " edge items " +
                  std::to_string(options.edge_items) + " line width " +
                  std::to_string(options.line_width));
         }
         if (to_string(x, options).empty()) throw std::logic_error("to_string: empty");
         return {};
       },
       {"print"}},
  };
  rows.insert(rows.end(), reading.begin(), reading.end());
}

// The methods are functions of ops.h under other names; errors carry the functions' names.
void add_methods(std::vector<Row>& rows) {
  const std::vector<Row> methods = {
      {"Tensor::to",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.to(s.dtype())};
       },
       {"astype"}},
      {"Tensor::contiguous", [](Source& s) -> Results { return {s.tensor().contiguous()}; }},
      {"Tensor::clone", [](Source& s) -> Results { return {s.tensor().clone()}; }},
      {"Tensor::reshape",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.reshape(s.reshaping(x))};
       }},
      {"Tensor::view",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.view(s.reshaping(x))};
       }},
      {"Tensor::permute",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.permute(s.axis_list(ndim_of(x), ndim_of(x)))};
       },
       {"permute_dims"}},
      {"Tensor::transpose",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         const std::int64_t axis0 = s.axis(ndim_of(x));
         return {x.transpose(axis0, s.axis(ndim_of(x)))};
       },
       {"swapaxes"}},
      {"Tensor::mT", [](Source& s) -> Results { return {s.tensor().mT()}; }, {"matrix_transpose"}},
      {"Tensor::expand",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.expand(s.expansion(x))};
       }},
      {"Tensor::operator[]",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x[s.position(x.defined() && x.ndim() > 0 ? x.size(0) : 1)]};
       },
       {"select"}},
      {"Tensor::index",
       [](Source& s) -> Results {
         const Tensor x = s.tensor();
         return {x.index(s.index_list(x))};
       }},
      {"Tensor::index_put_(tensor)",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const std::vector<Index> indices = s.index_list(x, Size::Bounded);
         return {x.index_put_(indices, s.partner(x))};
       }},
      {"Tensor::index_put_(scalar)",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const std::vector<Index> indices = s.index_list(x, Size::Bounded);
         return {x.index_put_(indices, s.scalar())};
       }},
      {"Tensor::index_put",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         const std::vector<Index> indices = s.index_list(x, Size::Bounded);
         return {s.flag() ? x.index_put(indices, s.partner(x)) : x.index_put(indices, s.scalar())};
       }},
      {"Tensor::copy_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {x.copy_(s.partner(x))};
       }},
      {"Tensor::fill_",
       [](Source& s) -> Results {
         const Tensor x = s.target();
         return {x.fill_(s.scalar())};
       }},
  };
  rows.insert(rows.end(), methods.begin(), methods.end());
}

}  // namespace

std::vector<Row> tensor_rows() {
  std::vector<Row> rows;
  add_making(rows);
  add_reading(rows);
  add_methods(rows);
  return rows;
}

}  // namespace baregrad::fuzz
