// Composed public functions, and the many forms of ops: first and second derivatives against finite
// differences.
#include <functional>
#include <limits>
#include <ostream>

#include "tests/autograd/support.h"

namespace baregrad {
namespace {

constexpr std::uint64_t kSeed = 11;

struct Input {
  Dims shape;
  Range range = {};
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Tensors(const Tensors&)> fn;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tensor ints(std::initializer_list<std::int64_t> v) { return Tensor::of<std::int64_t>(v); }
Tensor ints(std::vector<std::int64_t> v, const Dims& shape) {
  return Tensor::of<std::int64_t>(v, shape);
}
Tensor mask(std::initializer_list<int> v, const Dims& shape) {
  Tensor t = empty({static_cast<std::int64_t>(v.size())}, DType::Bool);
  std::int64_t i = 0;
  for (const int b : v) fill_(t[i++], b != 0);
  return reshape(t, shape);
}

Case one(std::string name, std::vector<Input> inputs, std::function<Tensor(const Tensors&)> fn) {
  return {std::move(name), std::move(inputs), [fn](const Tensors& in) { return Tensors{fn(in)}; }};
}
/// For one input [3,4].
Case of_x(std::string name, std::function<Tensor(const Tensor&)> fn) {
  return one(std::move(name), {{{3, 4}}}, [fn](const Tensors& in) { return fn(in[0]); });
}

void add_norms(std::vector<Case>& r) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::pair<const char*, double> orders[] = {
      {"1", 1}, {"2", 2}, {"3", 3}, {"inf", inf}, {"minus_inf", -inf}, {"half", 0.5}};
  for (const auto& [name, order] : orders) {
    const std::string text = std::string("norm_of_order_") + name;
    const double p = order;
    r.push_back(of_x(text, [p](const Tensor& x) { return norm(x, p); }));
    r.push_back(of_x(text + "_axis", [p](const Tensor& x) { return norm(x, p, 1); }));
    r.push_back(of_x(text + "_kept", [p](const Tensor& x) { return norm(x, p, 0, true) * x; }));
  }
}

void add_products(std::vector<Case>& r) {
  const auto mm = [](const Tensors& in) { return matmul(in[0], in[1]); };
  const std::pair<Dims, Dims> shapes[] = {
      {{4}, {4}},       {{4}, {4, 3}},       {{3, 4}, {4}},       {{2, 3, 4}, {4}},
      {{4}, {2, 4, 3}}, {{2, 3, 4}, {4, 2}}, {{3, 4}, {2, 4, 2}}, {{2, 1, 2, 3}, {3, 3, 2}},
      {{0, 4}, {4, 3}}, {{3, 0}, {0, 2}},    {{2, 0, 4}, {4, 3}}, {{0, 3, 4}, {4, 2}}};
  int k = 0;
  for (const auto& [a, b] : shapes) {
    r.push_back(one("matmul_" + std::to_string(k++), {{a}, {b}}, mm));
  }
  r.push_back(
      one("bmm", {{{2, 3, 4}}, {{2, 4, 2}}}, [](const Tensors& in) { return bmm(in[0], in[1]); }));
  r.push_back(one("outer", {{{3}}, {{4}}}, [](const Tensors& in) { return outer(in[0], in[1]); }));
  for (const double alpha : {1.0, 0.0, -1.5}) {
    for (const double beta : {1.0, 0.0, 2.5}) {
      for (const Dims& x : {Dims{3, 2}, Dims{2}, Dims{3, 1}, Dims{}}) {
        const std::string name = "addmm_" + std::to_string(k++);
        r.push_back(one(name, {{x}, {{3, 4}}, {{4, 2}}}, [alpha, beta](const Tensors& in) {
          return addmm(in[0], in[1], in[2], beta, alpha) + in[0] * 0.0;
        }));
      }
    }
  }
  const std::pair<const char*, Activation> activations[] = {{"none", Activation::None},
                                                            {"relu", Activation::Relu},
                                                            {"gelu", Activation::Gelu},
                                                            {"gelu_tanh", Activation::GeluTanh},
                                                            {"silu", Activation::Silu}};
  for (const auto& [name, activation] : activations) {
    const Activation act = activation;
    for (const Dims& x : {Dims{4}, Dims{3, 4}, Dims{2, 2, 4}, Dims{0, 4}, Dims{2, 0, 4}}) {
      const std::string text = std::string("linear_") + name + "_" + std::to_string(k++);
      r.push_back(one(text + "_bias", {{x}, {{3, 4}}, {{3}}},
                      [act](const Tensors& in) { return linear(in[0], in[1], in[2], act); }));
      r.push_back(one(text, {{x}, {{3, 4}}},
                      [act](const Tensors& in) { return linear(in[0], in[1], {}, act); }));
    }
  }
  r.push_back(one("vecdot_axis", {{{4, 3}}, {{4, 1}}},
                  [](const Tensors& in) { return vecdot(in[0], in[1], 0); }));
  r.push_back(one("tensordot", {{{2, 3, 2}}, {{3, 2, 2}}}, [](const Tensors& in) {
    return tensordot(in[0], in[1], {1, 2}, {0, 2});
  }));
  r.push_back(one("tensordot_0", {{{2}}, {{3}}},
                  [](const Tensors& in) { return tensordot(in[0], in[1], 0); }));
  const auto ein = [&](const char* name, const char* equation, std::vector<Input> inputs) {
    r.push_back(one(std::string("einsum_") + name, std::move(inputs),
                    [equation](const Tensors& in) { return einsum(equation, in); }));
  };
  ein("matmul", "ij,jk->ik", {{{2, 3}}, {{3, 2}}});
  ein("batch", "bij,bjk->bik", {{{2, 2, 3}}, {{2, 3, 2}}});
  ein("trace", "ii", {{{3, 3}}});
  ein("diagonal", "ii->i", {{{3, 3}}});
  ein("transpose", "ij->ji", {{{2, 3}}});
  ein("sum", "ij->", {{{2, 3}}});
  ein("three", "ij,jk,kl->il", {{{2, 2}}, {{2, 3}}, {{3, 2}}});
  ein("ellipsis", "...ij,...jk->...ik", {{{2, 2, 3}}, {{3, 2}}});
  ein("bilinear", "bi,ij,bj->b", {{{2, 3}}, {{3, 2}}, {{2, 2}}});
  ein("elementwise", "ij,ij->ij", {{{2, 3}}, {{2, 3}}});
  r.push_back(one("matmul_out", {{{3, 2}}, {{3, 4}}, {{4, 2}}}, [](const Tensors& in) {
    const Tensor out = in[0] * 2.0;
    return matmul_out(out, in[1], in[2], true) * out;
  }));
}

void add_movement(std::vector<Case>& r) {
  const std::vector<Input> three = {{{2, 3}}, {{2, 3}}, {{2, 3}}};
  r.push_back(one("stack_0", three, [](const Tensors& in) { return stack(in, 0); }));
  r.push_back(one("stack_last", three, [](const Tensors& in) { return stack(in, -1); }));
  r.push_back(one("concat_same_twice", {{{2, 3}}, {{1, 3}}}, [](const Tensors& in) {
    return concat({in[0], in[1], in[0] * in[0]}, 0);
  }));
  r.push_back(one("concat_many", {{{2}}, {{3}}}, [](const Tensors& in) {
    return concat({in[0], in[1], in[0], in[1], ones({2}, DType::Float64), in[0], in[1] * in[1]}, 0);
  }));
  r.push_back({"split", {{{3, 5}}}, [](const Tensors& in) { return split(in[0], 2, 1); }});
  r.push_back({"split_sizes", {{{5, 2}}}, [](const Tensors& in) {
                 return split(in[0], std::vector<std::int64_t>{1, 3, 1}, 0);
               }});
  r.push_back({"chunk", {{{5, 2}}}, [](const Tensors& in) { return chunk(in[0], 3, 0); }});
  r.push_back({"unstack", {{{2, 3}}}, [](const Tensors& in) { return unstack(in[0], 1); }});
  // Only one of several parts is used.
  r.push_back({"split_one", {{{6}}}, [](const Tensors& in) {
                 return Tensors{split(in[0] * in[0], 2, 0)[1]};
               }});
  r.push_back(of_x("repeat_flat", [](const Tensor& x) { return repeat(x, 3); }));
  r.push_back(of_x("repeat_0", [](const Tensor& x) { return repeat(x, 2, 0); }));
  r.push_back(of_x("repeat_1", [](const Tensor& x) { return repeat(x, 20, 1); }));
  r.push_back(of_x("repeat_counts", [](const Tensor& x) { return repeat(x, ints({2, 0, 3}), 0); }));
  r.push_back(of_x("tile", [](const Tensor& x) { return tile(x, {2, 3}); }));
  r.push_back(of_x("tile_more", [](const Tensor& x) { return tile(x, {2, 1, 2}); }));
  r.push_back(of_x("repeat_never", [](const Tensor& x) { return repeat(x, 0, 1); }));
  r.push_back(of_x("tile_never", [](const Tensor& x) { return tile(x, {2, 1, 0}); }));
  for (const Dims& nothing : {Dims{0, 3}, Dims{2, 0}}) {
    const std::string text = "_of_nothing_" + std::to_string(nothing[1]);
    const std::vector<Input> x = {{nothing}};
    r.push_back(one("repeat" + text, x, [](const Tensors& in) { return repeat(in[0], 2, 0); }));
    r.push_back(one("tile" + text, x, [](const Tensors& in) { return tile(in[0], {2, 2}); }));
    r.push_back(one("pad" + text, x, [](const Tensors& in) { return pad(in[0], {0, 0, 1, 1}); }));
    r.push_back(one("pad_edge" + text, x, [](const Tensors& in) {
      return pad(in[0],
                 in[0].shape()[0] == 0 ? std::vector<std::int64_t>{0, 0, 1, 1}
                                       : std::vector<std::int64_t>{1, 1, 0, 0},
                 PadMode::Edge);
    }));
    r.push_back(one("concat" + text, {{nothing}, {{2, 3}}}, [](const Tensors& in) {
      return in[0].shape()[0] == 0 ? concat(in, 0) : concat(in, 1);
    }));
    r.push_back(one("einsum" + text, {{nothing}, {{3, 2}}}, [](const Tensors& in) {
      return in[0].shape()[1] == 3 ? einsum("ij,jk->ik", in) : einsum("ij,kl->kl", in);
    }));
    r.push_back(
        one("outer" + text, {{{0}}, {{3}}}, [](const Tensors& in) { return outer(in[0], in[1]); }));
  }
  r.push_back(of_x("roll_axis", [](const Tensor& x) { return roll(x, {1, -2}, {0, 1}); }));
  r.push_back(of_x("tril", [](const Tensor& x) { return tril(x * x, -1); }));
  r.push_back(of_x("triu", [](const Tensor& x) { return triu(x * x, -1); }));
  r.push_back(of_x("moveaxis", [](const Tensor& x) { return moveaxis(x, {0}, {1}); }));
  r.push_back(of_x("flatten", [](const Tensor& x) { return flatten(x.mT()); }));
  r.push_back(of_x("reshape_copy", [](const Tensor& x) { return reshape(x.mT(), {2, 6}); }));
  r.push_back(of_x("as_strided_overlap", [](const Tensor& x) {
    return as_strided(x * x, {3, 3, 2}, {2, 1, 3}, 1);
  }));
  r.push_back(of_x("as_strided_of_view", [](const Tensor& x) {
    const Tensor t = (x * x).mT();
    return as_strided(t, {2, 3}, {5, 2}, 1);
  }));
  r.push_back(of_x("as_strided_of_expanded", [](const Tensor& x) {
    return as_strided(expand(x * x, {2, 3, 4}), {2, 3}, {5, 2}, 1);
  }));
  r.push_back(of_x("unfold_overlap", [](const Tensor& x) { return unfold(x, 1, 3, 1); }));
  r.push_back(of_x("unfold_apart", [](const Tensor& x) { return unfold(x, 1, 1, 2); }));
  r.push_back(of_x("diagonal_below", [](const Tensor& x) { return diagonal(x * x, -1); }));
  r.push_back(one("diagonal_axes", {{{3, 2, 3}}},
                  [](const Tensors& in) { return diagonal(in[0], 1, 2, 0); }));
  r.push_back({"meshgrid", {{{3}}, {{2}}}, [](const Tensors& in) { return meshgrid(in); }});
  r.push_back(
      {"meshgrid_ij", {{{3}}, {{2}}}, [](const Tensors& in) { return meshgrid(in, false); }});
  r.push_back({"broadcast_tensors", {{{3, 1}}, {{2}}}, [](const Tensors& in) {
                 return broadcast_tensors(in);
               }});
  const std::pair<const char*, PadMode> modes[] = {{"constant", PadMode::Constant},
                                                   {"reflect", PadMode::Reflect},
                                                   {"edge", PadMode::Edge},
                                                   {"wrap", PadMode::Wrap}};
  for (const auto& [name, mode] : modes) {
    const PadMode m = mode;
    r.push_back(of_x(std::string("pad_") + name, [m](const Tensor& x) {
      return pad(x * x, {2, 1, 0, 3}, m, 5);
    }));
  }
  r.push_back(of_x("astype_there_and_back", [](const Tensor& x) {
    return astype(astype(x, DType::Float64, true), DType::Float64, false) * x;
  }));
}

void add_picking(std::vector<Case>& r) {
  const auto idx = [&](const char* name, std::vector<Index> at) {
    r.push_back(of_x(std::string("index_") + name, [at](const Tensor& x) { return index(x, at); }));
    // Writes: with and without accumulation, from values that are broadcast or not.
    for (const bool adds : {false, true}) {
      const std::string put = std::string("index_put_") + name + (adds ? "_add" : "");
      r.push_back(one(put, {{{3, 4}}, {{3, 4}}}, [at, adds](const Tensors& in) {
        const Tensor x = in[0] * in[0];
        index_put_(x, at, index(in[1], at) * 2.0, adds);
        return x;
      }));
      r.push_back(one(put + "_number", {{{3, 4}}, {{}}}, [at, adds](const Tensors& in) {
        const Tensor x = in[0] * in[0];
        index_put_(x, at, in[1] * in[1], adds);
        return x;
      }));
    }
  };
  idx("row", {1});
  idx("slice", {Slice{0, 2}, Slice{1, {}, 2}});
  idx("backwards", {Slice{{}, {}, -1}, Slice{3, {}, -2}});
  idx("new_axis", {NewAxis{}, Ellipsis{}, -1});
  idx("positions", {ints({2, 0, 2, -1})});
  idx("two_positions", {ints({2, 0, 2}), ints({1, -1, 1})});
  idx("two_broadcast", {ints({2, 0, 2}, {3, 1}), ints({1, 3})});
  idx("positions_last", {Slice{}, ints({3, 0, 3})});
  idx("positions_and_slice", {ints({1, 1, 0}), Slice{{}, {}, -2}});
  idx("around_a_slice", {ints({1, 0}), NewAxis{}, ints({2, 2})});
  idx("mask", {mask({1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0}, {3, 4})});
  idx("row_mask", {mask({1, 0, 1}, {3})});
  idx("row_mask_and_position", {mask({1, 0, 1}, {3}), ints({0, 3})});
  idx("column_mask", {Slice{}, mask({1, 0, 0, 1}, {4})});
  idx("nothing", {ints({})});
  r.push_back(of_x("take_flat", [](const Tensor& x) { return take(x, ints({11, 0, 5, 0, -1})); }));
  r.push_back(of_x("take_1", [](const Tensor& x) { return take(x, ints({3, 0, 3}), 1); }));
  r.push_back(of_x("index_select", [](const Tensor& x) {
    return index_select(x, 0, ints({2, 2, 0}));
  }));
  r.push_back(of_x("take_along_axis", [](const Tensor& x) {
    return take_along_axis(x, ints({0, 2, 1, 1, 0, 0, 2, 2}, {2, 4}), 0);
  }));
  r.push_back(one("take_along_axis_broadcast", {{{1, 4}}}, [](const Tensors& in) {
    return take_along_axis(in[0], ints({0, 3, 1, 1, 0, 0}, {3, 2}), 1);
  }));
  r.push_back(of_x("gather_smaller", [](const Tensor& x) {
    return gather(x, 1, ints({0, 3, 3, 1, 1, 2}, {2, 3}));
  }));
  for (const bool adds : {false, true}) {
    const auto place = [adds](const Tensor& x, int axis, const Tensor& at, const Tensor& source) {
      return adds ? scatter_add(x, axis, at, source) : scatter(x, axis, at, source);
    };
    const std::string name = adds ? "scatter_add" : "scatter";
    r.push_back(one(name + "_duplicates", {{{3, 4}}, {{2, 4}}}, [place](const Tensors& in) {
      return place(in[0], 0, ints({0, 2, 1, 1, 0, 0, 1, 2}, {2, 4}), in[1] * in[1]);
    }));
    r.push_back(one(name + "_larger_source", {{{3, 4}}, {{3, 5}}}, [place](const Tensors& in) {
      return place(in[0], 1, ints({0, 3, 3, 1, 1, 2}, {2, 3}), in[1] * in[1]);
    }));
  }
  r.push_back(one("scatter_number", {{{3, 4}}}, [](const Tensors& in) {
    return scatter(in[0] * in[0], 1, ints({0, 3, 1}, {3, 1}), 2.5);
  }));
  const Tensor some = mask({1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0}, {3, 4});
  const Tensor rows = mask({1, 0, 1}, {3, 1});
  r.push_back(one("masked_fill", {{{3, 4}}, {{}}},
                  [some](const Tensors& in) { return masked_fill(in[0] * in[0], some, in[1]); }));
  r.push_back(one("masked_fill_broadcast", {{{4}}, {{}}},
                  [rows](const Tensors& in) { return masked_fill(in[0] * in[0], rows, in[1]); }));
  r.push_back(one("masked_fill_in_place", {{{3, 4}}, {{4}}}, [rows](const Tensors& in) {
    const Tensor x = in[0] * in[0];
    return masked_fill_(x, rows, in[1]) * x;
  }));
  r.push_back(of_x("masked_select", [some](const Tensor& x) { return masked_select(x, some); }));
  r.push_back(
      of_x("masked_select_rows", [rows](const Tensor& x) { return masked_select(x, rows); }));
  r.push_back(one("where_broadcast", {{{4}}, {{3, 1}}},
                  [some](const Tensors& in) { return where(some, in[0] * in[0], in[1] * in[1]); }));
  r.push_back(one("where_number", {{{3, 4}}},
                  [some](const Tensors& in) { return where(some, in[0] * in[0], 7.0); }));
}

void add_bounds_and_order(std::vector<Case>& r) {
  r.push_back(of_x("clip_numbers", [](const Tensor& x) { return clip(x * x, 0.5, 1.5); }));
  r.push_back(of_x("clip_low", [](const Tensor& x) { return clip(x, -0.5, {}); }));
  r.push_back(of_x("clip_high", [](const Tensor& x) { return clip(x, {}, 0.5); }));
  r.push_back(of_x("clip_none", [](const Tensor& x) { return clip(x, {}, {}); }));
  r.push_back(of_x("clip_in_place", [](const Tensor& x) {
    const Tensor y = x * x;
    clip_(y, 0.5, 1.5);
    return clip_(y, {}, 1.0) * x;
  }));
  r.push_back(one("clip_tensors", {{{3, 4}}, {{4}, {-2, -0.1}}, {{3, 1}, {0.1, 2}}},
                  [](const Tensors& in) { return clip(in[0], in[1], in[2]); }));
  r.push_back(one("clip_low_tensor", {{{3, 4}}, {{4}}},
                  [](const Tensors& in) { return clip(in[0], in[1], {}); }));
  r.push_back(one("clip_high_tensor", {{{3, 4}}, {{}}},
                  [](const Tensors& in) { return clip(in[0], {}, in[1]); }));
  r.push_back(one("clip_mixed", {{{3, 4}}, {{4}}},
                  [](const Tensors& in) { return clip(in[0], in[1], 1.2); }));
  for (const bool descending : {false, true}) {
    const std::string down = descending ? "_down" : "";
    for (const int axis : {0, 1}) {
      const std::string along = down + "_" + std::to_string(axis);
      r.push_back(
          of_x("sort" + along, [=](const Tensor& x) { return sort(x * x, axis, descending); }));
      r.push_back({"sort_with_indices" + along, {{{3, 4}}}, [=](const Tensors& in) {
                     const auto sorted = sort_with_indices(in[0], axis, descending);
                     return Tensors{sorted.values, sorted.indices};
                   }});
      r.push_back(of_x("topk" + along,
                       [=](const Tensor& x) { return topk(x, 2, axis, descending).values; }));
    }
  }
}

void add_reductions(std::vector<Case>& r) {
  struct Form {
    const char* name;
    Axes axes;
    bool keepdims;
  };
  const Form forms[] = {{"all", {}, false},        {"0", 0, false},         {"1_kept", 1, true},
                        {"0_2", {0, 2}, false},    {"none", Dims{}, false}, {"all_kept", {}, true},
                        {"2_1_kept", {2, 1}, true}};
  using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::pair<const char*, Reduce> reductions[] = {
      {"sum", [](const Tensor& x, const Axes& a, bool k) { return sum(x, a, k); }},
      {"prod", [](const Tensor& x, const Axes& a, bool k) { return prod(x, a, k); }},
      {"mean", [](const Tensor& x, const Axes& a, bool k) { return mean(x, a, k); }},
      {"max", [](const Tensor& x, const Axes& a, bool k) { return max(x, a, k); }},
      {"min", [](const Tensor& x, const Axes& a, bool k) { return min(x, a, k); }},
      {"amax", [](const Tensor& x, const Axes& a, bool k) { return amax(x, a, k); }},
      {"amin", [](const Tensor& x, const Axes& a, bool k) { return amin(x, a, k); }},
      {"sum_squares", [](const Tensor& x, const Axes& a, bool k) { return sum_squares(x, a, k); }},
      {"logsumexp", [](const Tensor& x, const Axes& a, bool k) { return logsumexp(x, a, k); }},
      {"var_0", [](const Tensor& x, const Axes& a, bool k) { return var(x, a, 0.0, k); }},
      {"var_half", [](const Tensor& x, const Axes& a, bool k) { return var(x, a, 0.5, k); }},
      {"norm", [](const Tensor& x, const Axes& a, bool k) { return norm(x, 2.0, a, k); }},
  };
  for (const auto& [name, reduce] : reductions) {
    for (const Form& form : forms) {
      const Reduce fn = reduce;
      const Form f = form;
      r.push_back(one(std::string(name) + "_" + f.name, {{{2, 3, 2}}},
                      [fn, f](const Tensors& in) { return fn(in[0], f.axes, f.keepdims); }));
    }
  }
  // For one element these are constants, or empty.
  for (const Form& form : forms) {
    if (std::string(form.name) == "none") continue;
    const Form f = form;
    r.push_back(one(std::string("std_0_") + f.name, {{{2, 3, 2}}}, [f](const Tensors& in) {
      return baregrad::std(in[0], f.axes, 0.0, f.keepdims);
    }));
    r.push_back(one(std::string("std_1_") + f.name, {{{2, 3, 2}}}, [f](const Tensors& in) {
      return baregrad::std(in[0], f.axes, 1.0, f.keepdims);
    }));
    r.push_back(one(std::string("var_1_") + f.name, {{{2, 3, 2}}},
                    [f](const Tensors& in) { return var(in[0], f.axes, 1.0, f.keepdims); }));
  }
  // Zeros among the factors: none, one, or several per line. Exact only at zeros: the offset
  // subtracted is the initial value of the input.
  const Tensor zero = mask({0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0}, {3, 4});
  const Tensor start = where(zero, Spread(kSeed).draw({3, 4}), 0.0);
  const auto holed = [start](const Tensor& x) { return x - start; };
  r.push_back(of_x("prod_zeros", [holed](const Tensor& x) { return prod(holed(x)); }));
  for (const int axis : {0, 1}) {
    const std::string along = "_zeros_" + std::to_string(axis);
    r.push_back(of_x("prod" + along, [=](const Tensor& x) { return prod(holed(x), axis); }));
    r.push_back(of_x("cumulative_prod" + along,
                     [=](const Tensor& x) { return cumulative_prod(holed(x), axis); }));
    r.push_back(of_x("cumulative_sum_" + std::to_string(axis),
                     [=](const Tensor& x) { return cumulative_sum(x * x, axis); }));
    r.push_back(of_x("cumulative_max_" + std::to_string(axis),
                     [=](const Tensor& x) { return cumulative_max(x * x, axis); }));
    r.push_back(of_x("cumulative_prod_" + std::to_string(axis),
                     [=](const Tensor& x) { return cumulative_prod(x, axis); }));
    r.push_back(
        of_x("softmax_" + std::to_string(axis), [=](const Tensor& x) { return softmax(x, axis); }));
    r.push_back(of_x("log_softmax_" + std::to_string(axis),
                     [=](const Tensor& x) { return log_softmax(x, axis); }));
  }
  r.push_back(
      of_x("sum_as_float64", [](const Tensor& x) { return sum(x, 0, false, DType::Float64); }));
  r.push_back(of_x("leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.3); }));
  r.push_back(of_x("elu", [](const Tensor& x) { return elu(x, 1.7); }));
  r.push_back(of_x("softplus", [](const Tensor& x) { return softplus(x, 3.0, 2.0); }));
  r.push_back(one("addcmul", {{{3, 1}}, {{4}}, {{}}},
                  [](const Tensors& in) { return addcmul(in[0], in[1], in[2], -0.5); }));
  r.push_back(of_x("numbers_on_the_left", [](const Tensor& x) {
    return (2.0 - x) * 3.0 / (5.0 + x) + pow(2.0, x) + maximum(0.25, x);
  }));
  r.push_back(one("pow_negative_base", {{{5}, {-2, 2}}},
                  [](const Tensors& in) { return pow(in[0], 3.0) + pow(in[0], 2); }));
  r.push_back(one("the_same_twice", {{{5}}}, [](const Tensors& in) {
    return in[0] * in[0] + matmul(in[0], in[0]) + hypot(in[0], in[0] + 5.0);
  }));
}

std::vector<Case> cases() {
  std::vector<Case> r;
  add_norms(r);
  add_products(r);
  add_movement(r);
  add_picking(r);
  add_bounds_and_order(r);
  add_reductions(r);
  return r;
}

class Composed : public ::testing::TestWithParam<Case> {};

TEST_P(Composed, NO_TSAN_GradientsHold) {
  const Case& c = GetParam();
  for (const bool transposed : {false, true}) {
    Spread spread(kSeed);
    Tensors inputs;
    for (const Input& input : c.inputs) {
      Tensor t = spread.draw(input.shape, input.range);
      if (transposed && t.ndim() >= 2) t = t.mT().contiguous().mT();
      inputs.push_back(t.detach().requires_grad_());
    }
    const Tensors outputs = c.fn(inputs);
    for (const Tensor& t : outputs) {
      ASSERT_EQ(t.requires_grad(), is_floating(t.dtype()));
    }
    EXPECT_EQ(autograd::gradcheck(c.fn, inputs), "") << transposed;
    EXPECT_EQ(autograd::gradgradcheck(c.fn, inputs), "") << transposed << ", second derivative";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Composed, ::testing::ValuesIn(cases()),
                         [](const ::testing::TestParamInfo<Case>& c) { return c.param.name; });

/// The slope of a count is zero: the gradient is zero, not missing.
TEST(ComposedRules, NormOfOrderZeroHasAZeroGradient) {
  const Tensor x = leaf({1, 0, 2});
  const Tensor y = norm(x, 0.0);
  ASSERT_TRUE(y.requires_grad());
  EXPECT_EQ(autograd::grad({y}, {x})[0].to_vector<double>(), std::vector<double>(3));
  EXPECT_FALSE(count_nonzero(x).requires_grad());
}

/// Gradients have the dtype of the input, through conversions and mixed operands.
TEST(ComposedRules, GradientsHaveTheDTypeOfTheirInput) {
  const Tensor half = ones({3}, DType::Float16).requires_grad_();
  const Tensor single = full({3}, 2.0, DType::Float32).requires_grad_();
  const Tensor wide = full({3}, 3.0, DType::Float64).requires_grad_();
  const Tensor whole = Tensor::of<std::int64_t>({1, 2, 3});
  sum(astype(half, DType::Float32) * single * wide * whole).backward();
  EXPECT_EQ(half.grad().dtype(), DType::Float16);
  EXPECT_EQ(single.grad().dtype(), DType::Float32);
  EXPECT_EQ(wide.grad().dtype(), DType::Float64);
  EXPECT_EQ(astype(half.grad(), DType::Float64).to_vector<double>(),
            (std::vector<double>{6, 12, 18}));
  EXPECT_FALSE(astype(wide, DType::Int64).requires_grad());
}

}  // namespace
}  // namespace baregrad
