// Rows of the view ops and the irregular ones. tests/ops compares their values with independent
// loops; the runners here check that layout, threads, ISA and failing memory change nothing.
#include "baregrad/ops_conv.h"
#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

namespace {

using One = std::function<Tensor(const Inputs&)>;
using Many = std::function<std::vector<Tensor>(const Inputs&)>;

std::int64_t last(const Dims& shape) { return shape.empty() ? 1 : shape.back(); }
std::int64_t first(const Dims& shape) { return shape.empty() ? 1 : shape[0]; }

OpRow many(OpId op, const std::vector<DType>& dtypes, Many call) {
  OpRow row;
  row.op = op;
  row.call = std::move(call);
  row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape)};
  };
  row.dtypes = dtypes;
  return row;
}
OpRow one(OpId op, const std::vector<DType>& dtypes, One call) {
  return many(op, dtypes, [call](const Inputs& in) { return std::vector<Tensor>{call(in)}; });
}
/// Input 1 is made from the shape of input 0.
OpRow with(OpRow row, std::function<Tensor(Rng&, DType, const Dims&)> second) {
  row.tensors = 2;
  row.inputs = [second](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape), second(rng, dtype, shape)};
  };
  return row;
}
/// A creation op has no input: an empty tensor provides the dtype.
OpRow source(OpId op, const std::vector<DType>& dtypes, std::function<Tensor(DType)> call) {
  return one(op, dtypes, [call](const Inputs& in) { return call(in[0].dtype()); });
}

/// Images for ops that take them: none, small ones, or enough for several threads.
Dims images_for(const Dims& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  if (count == 0) return {0, 2, 4, 3};
  return count > 10000 ? Dims{5, 8, 31, 26} : Dims{2, 2, 4, 3};
}
/// Filters of 3 x 2 in two groups, with a stride of two rows: their inputs and outputs.
const ConvOptions kFilters{{2, 1}, {1, 1}, {1, 2}, 2};
Dims filters_for(const Dims& images) { return {4, images[1] / 2, 3, 2}; }
Dims filtered(const Dims& images) { return {images[0], 4, (images[2] - 1) / 2 + 1, images[3]}; }
const PoolOptions kWindows{{3, 2}, {2, 1}, {1, 1}, true, false};
Dims pooled(const Dims& images) { return {images[0], images[1], images[2] / 2 + 1, images[3] + 1}; }
OpRow images(OpRow row, Dims (*first)(const Dims&), Dims (*second)(const Dims&) = nullptr) {
  row.tensors = second == nullptr ? 1 : 2;
  row.inputs = [first, second](Rng& rng, DType dtype, const Dims& shape) {
    const Dims image = images_for(shape);
    Inputs in{sample(rng, dtype, first == nullptr ? image : first(image))};
    if (second != nullptr) in.push_back(sample(rng, dtype, second(image)));
    return in;
  };
  return row;
}

}  // namespace

std::vector<OpRow> view_rows() {
  const auto& all = all_dtypes();
  std::vector<OpRow> r;
  r.push_back(one(OpId::alias, all, [](const Inputs& in) { return alias(in[0]); }));
  r.push_back(one(OpId::as_strided, all,
                  [](const Inputs& in) { return as_strided(in[0], {1}, {1}, in[0].offset()); }));
  r.back().inputs = [](Rng& rng, DType dtype, const Dims&) {
    return Inputs{sample(rng, dtype, {3, 4})};
  };
  r.push_back(one(OpId::slice, all, [](const Inputs& in) {
    return in[0].ndim() == 0 ? in[0] : slice(in[0], -1, {{}, {}, -2});
  }));
  r.push_back(one(OpId::permute_dims, all, [](const Inputs& in) {
    Dims order;
    for (int i = in[0].ndim() - 1; i >= 0; --i) order.push_back(i);
    return permute_dims(in[0], order);
  }));
  r.push_back(one(OpId::reshape_view, all,
                  [](const Inputs& in) { return reshape(in[0], {in[0].numel()}); }));
  r.push_back(one(OpId::expand, all, [](const Inputs& in) {
    Dims shape = in[0].shape();
    shape.insert(0, 2);
    return expand(in[0], shape);
  }));
  r.push_back(one(OpId::squeeze, all, [](const Inputs& in) { return squeeze(in[0]); }));
  r.push_back(one(OpId::expand_dims, all, [](const Inputs& in) {
    return expand_dims(in[0], {0, -1});
  }));
  r.push_back(one(OpId::flip, all, [](const Inputs& in) { return flip(in[0]); }));
  r.push_back(one(OpId::unfold, all, [](const Inputs& in) {
    return in[0].ndim() == 0 ? in[0] : unfold(in[0], -1, last(in[0].shape()) > 1 ? 2 : 0, 1);
  }));
  r.push_back(one(OpId::diagonal, all,
                  [](const Inputs& in) { return in[0].ndim() < 2 ? in[0] : diagonal(in[0], 1); }));
  return r;
}

std::vector<OpRow> irregular_rows() {
  const auto& all = all_dtypes();
  const auto& num = numeric_dtypes();
  const auto& floats = floating_dtypes();
  std::vector<OpRow> r;
  r.push_back(many(OpId::astype, all, [](const Inputs& in) {
    std::vector<Tensor> out;
    for (const DType d : all_dtypes()) out.push_back(astype(in[0], d));
    return out;
  }));
  r.push_back(one(OpId::contiguous_copy, all, [](const Inputs& in) { return clone(in[0]); }));
  r.push_back(one(OpId::fill, all, [](const Inputs& in) { return full_like(in[0], 1); }));
  r.push_back(source(OpId::arange, num, [](DType d) { return arange(1, 20, 3, d); }));
  r.push_back(source(OpId::linspace, floats, [](DType d) { return linspace(-1, 2, 7, d); }));
  r.push_back(source(OpId::eye, all, [](DType d) { return eye(3, 4, 1, d); }));
  const auto matrix = [](const Tensor& x) { return x.ndim() < 2 ? reshape(x, {1, x.numel()}) : x; };
  r.push_back(one(OpId::tril, all, [matrix](const Inputs& in) { return tril(matrix(in[0])); }));
  r.push_back(one(OpId::triu, all, [matrix](const Inputs& in) { return triu(matrix(in[0]), 1); }));
  r.push_back(source(OpId::random_uniform, floats, [](DType d) {
    Generator g(5);
    return uniform({40000}, -1, 3, d, &g);
  }));
  r.push_back(source(OpId::random_normal, floats, [](DType d) {
    Generator g(5);
    return normal({40000}, 1, 2, d, &g);
  }));
  r.push_back(source(OpId::random_int, integer_dtypes(), [](DType d) {
    Generator g(5);
    return randint(3, 100, {40000}, d, &g);
  }));
  r.push_back(source(OpId::random_perm, {int16, int32, int64, uint16, uint32, uint64}, [](DType d) {
    Generator g(5);
    return randperm(1000, d, &g);
  }));
  r.push_back(one(OpId::bernoulli, floats, [](const Inputs& in) {
    Generator g(5);
    return bernoulli(in[0], &g);
  }));
  r.back().inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape, 0, 1)};
  };
  r.push_back(
      one(OpId::cumulative_sum, all, [](const Inputs& in) { return cumulative_sum(in[0], -1); }));
  r.push_back(
      one(OpId::cumulative_prod, all, [](const Inputs& in) { return cumulative_prod(in[0], -1); }));
  r.push_back(
      one(OpId::cumulative_max, all, [](const Inputs& in) { return cumulative_max(in[0], 0); }));
  r.push_back(one(OpId::softmax, all, [](const Inputs& in) { return softmax(in[0], 0); }));
  r.push_back(one(OpId::log_softmax, all, [](const Inputs& in) { return log_softmax(in[0]); }));
  r.push_back(one(OpId::logsumexp, all, [](const Inputs& in) { return logsumexp(in[0]); }));
  r.push_back(
      with(one(OpId::concat, all,
               [](const Inputs& in) {
                 return concat({in[0], in[1]}, in[0].ndim() == 0 ? std::optional<std::int64_t>{}
                                                                 : std::optional<std::int64_t>{0});
               }),
           [](Rng& rng, DType dtype, const Dims& shape) { return sample(rng, dtype, shape); }));
  r.push_back(one(OpId::roll, all, [](const Inputs& in) { return roll(in[0], {2}); }));
  r.push_back(one(OpId::pad, all, [](const Inputs& in) {
    return pad(in[0], std::vector<std::int64_t>(static_cast<std::size_t>(in[0].ndim()) * 2, 1));
  }));
  r.push_back(with(one(OpId::take, all,
                       [](const Inputs& in) {
                         return in[0].numel() == 0 || in[0].ndim() == 0 ? in[0]
                                                                        : take(in[0], in[1], 0);
                       }),
                   [](Rng& rng, DType, const Dims& shape) {
                     const std::int64_t n = std::max<std::int64_t>(first(shape), 1);
                     return sample_indices(rng, {5}, -n, n);
                   }));
  const auto index_like = [](Rng& rng, DType, const Dims& shape) {
    const std::int64_t n = std::max<std::int64_t>(last(shape), 1);
    return sample_indices(rng, shape, -n, n);
  };
  r.push_back(with(
      one(OpId::gather, all,
          [](const Inputs& in) { return in[0].ndim() == 0 ? in[0] : gather(in[0], -1, in[1]); }),
      index_like));
  r.push_back(with(one(OpId::scatter, all,
                       [](const Inputs& in) {
                         return in[0].ndim() == 0 ? in[0] : scatter(in[0], -1, in[1], in[0]);
                       }),
                   index_like));
  r.push_back(with(one(OpId::scatter_add, all,
                       [](const Inputs& in) {
                         return in[0].ndim() == 0 ? in[0] : scatter_add(in[0], -1, in[1], in[0]);
                       }),
                   index_like));
  r.push_back(with(
      one(OpId::masked_select, all, [](const Inputs& in) { return masked_select(in[0], in[1]); }),
      [](Rng& rng, DType, const Dims& shape) { return sample(rng, bool_, shape); }));
  r.push_back(many(OpId::nonzero, all, [](const Inputs& in) {
    return in[0].ndim() == 0 ? std::vector<Tensor>{in[0]} : nonzero(in[0]);
  }));
  const auto rows_of = [](Rng& rng, DType, const Dims& shape) {
    const std::int64_t n = std::max<std::int64_t>(first(shape), 1);
    return sample_indices(rng, {2, 3}, -n, n);
  };
  r.push_back(with(one(OpId::index, all,
                       [](const Inputs& in) {
                         return in[0].numel() == 0 || in[0].ndim() == 0 ? in[0]
                                                                        : index(in[0], {in[1]});
                       }),
                   rows_of));
  r.push_back(with(one(OpId::index_put, all,
                       [](const Inputs& in) {
                         const Tensor x = clone(in[0]);
                         if (x.numel() != 0 && x.ndim() != 0) index_put_(x, {in[1]}, 1);
                         return x;
                       }),
                   rows_of));
  r.push_back(many(OpId::sort, all, [](const Inputs& in) {
    const auto [values, indices] = sort_with_indices(in[0], -1);
    return std::vector<Tensor>{values, indices};
  }));
  r.push_back(many(OpId::topk, all, [](const Inputs& in) {
    const auto [values, indices] = topk(in[0], std::min<std::int64_t>(2, last(in[0].shape())), -1);
    return std::vector<Tensor>{values, indices};
  }));
  r.push_back(
      with(one(OpId::searchsorted, all,
               [](const Inputs& in) { return searchsorted(sort(reshape(in[0], {-1})), in[1]); }),
           [](Rng& rng, DType dtype, const Dims&) {
             return sample(rng, dtype, {4, 3});
           }));
  r.push_back(many(OpId::unique, all, [](const Inputs& in) {
    const UniqueAll u = unique_all(in[0]);
    return std::vector<Tensor>{u.values, u.indices, u.inverse, u.counts};
  }));
  r.push_back(images(one(OpId::conv2d, floats,
                         [](const Inputs& in) { return conv2d(in[0], in[1], Tensor(), kFilters); }),
                     nullptr, filters_for));
  // The size of the images from which a gradient of this size comes.
  const auto image_of = [](const Tensor& g) {
    return g.shape()[3] == 3 ? Dims{4, 3} : Dims{31, 26};
  };
  r.push_back(images(one(OpId::conv2d_input, floats,
                         [image_of](const Inputs& in) {
                           return conv2d_input(in[0], in[1], image_of(in[0]), kFilters);
                         }),
                     filtered, filters_for));
  r.push_back(images(one(OpId::conv2d_weight, floats,
                         [](const Inputs& in) {
                           return conv2d_weight(in[0], in[1], {3, 2}, kFilters);
                         }),
                     nullptr, filtered));
  r.push_back(images(many(OpId::max_pool2d, floats,
                          [](const Inputs& in) {
                            const auto [values, positions] =
                                max_pool2d_with_indices(in[0], kWindows);
                            return std::vector<Tensor>{values, positions};
                          }),
                     nullptr));
  r.push_back(images(
      one(OpId::avg_pool2d, floats, [](const Inputs& in) { return avg_pool2d(in[0], kWindows); }),
      nullptr));
  r.push_back(images(one(OpId::avg_pool2d_backward, floats,
                         [](const Inputs& in) {
                           return avg_pool2d_backward(
                               in[0], in[0].shape()[3] == 4 ? Dims{4, 3} : Dims{31, 26}, kWindows);
                         }),
                     pooled));
  return r;
}

}  // namespace baregrad::op_table
