// The exact type and message of errors, one row per case.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

struct ErrorCase {
  std::string name;
  std::type_index type;
  std::function<void()> call;
  std::string text;
};

template <class E>
ErrorCase refused(std::string name, std::function<void()> call, std::string text) {
  return {std::move(name), typeid(E), std::move(call), std::move(text)};
}

Tensor f32(const Dims& shape) { return zeros(shape); }
Tensor i32(const Dims& shape) { return ones(shape, int32); }
Tensor truth(const Dims& shape) { return zeros(shape, bool_); }
Tensor positions(std::initializer_list<std::int64_t> list) { return Tensor::of(list); }

class Errors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(Errors, NameTheCallAndWhatIsWrong) {
  const ErrorCase& c = GetParam();
  try {
    c.call();
    ADD_FAILURE() << "nothing was thrown; wanted: " << c.text;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), c.text);
    EXPECT_EQ(std::type_index(typeid(e)), c.type) << "thrown as " << typeid(e).name();
  }
}

std::vector<ErrorCase> elementwise_cases() {
  return {
      refused<ShapeError>(
          "add_shapes",
          [] {
            add(f32({2, 3}), f32({2, 4}));
          },
          "add: cannot broadcast float32[2,3] and float32[2,4]: sizes 3 and 4 differ at axis -1"),
      refused<ShapeError>(
          "add_shapes_of_different_lengths",
          [] {
            add(f32({5, 1, 3}), i32({4, 2, 3}));
          },
          "add: cannot broadcast float32[5,1,3] and int32[4,2,3]: sizes 5 and 4 differ at axis -3"),
      refused<ShapeError>(
          "where_shapes", [] { where(truth({2}), f32({3}), f32({1})); },
          "where: cannot broadcast bool[2], float32[3] and float32[1]: sizes 2 and 3 differ at "
          "axis "
          "-1"),
      refused<ShapeError>(
          "broadcast_beyond_memory",
          [] {
            add(expand(f32({1, 1}), {std::int64_t{1} << 40, 1}),
                expand(f32({1}), {std::int64_t{1} << 40}));
          },
          "add: shape [1099511627776,1099511627776] of float32 has more bytes than an address can "
          "count"),
      refused<DTypeError>(
          "subtract_bool", [] { subtract(truth({2}), truth({2})); },
          "subtract: takes numbers (cast bool with astype), not bool[2] and bool[2]"),
      refused<DTypeError>(
          "negative_bool", [] { negative(truth({2})); },
          "negative: takes numbers (cast bool with astype), not bool[2]"),
      refused<DTypeError>(
          "bitwise_and_float", [] { bitwise_and(f32({2}), i32({2})); },
          "bitwise_and: takes integers or bool, not float32[2] and int32[2]"),
      refused<DTypeError>(
          "bitwise_invert_float", [] { bitwise_invert(f32({})); },
          "bitwise_invert: takes integers or bool, not float32[]"),
      refused<DTypeError>(
          "shift_bool", [] { bitwise_left_shift(truth({2}), truth({2})); },
          "bitwise_left_shift: takes integers, not bool[2] and bool[2]"),
      refused<DTypeError>(
          "shift_float", [] { bitwise_right_shift(i32({2}), 1.5); },
          "bitwise_right_shift: takes integers, not int32[2] and float32[]"),
      refused<DTypeError>(
          "no_common_integer", [] { add(ones({2}, uint64), ones({2}, int64)); },
          "add: no integer dtype holds both uint64 and int64 of uint64[2] and int64[2]; cast one "
          "of "
          "them with astype"),
      refused<DTypeError>(
          "no_common_integer_in_where",
          [] { where(truth({2}), ones({2}, int8), ones({2}, uint64)); },
          "where: no integer dtype holds both int8 and uint64 of bool[2], int8[2] and uint64[2]; "
          "cast one of them with astype"),
      refused<ValueError>(
          "weak_scalar_too_large", [] { add(ones({2}, int8), 300); }, "add: 300 does not fit int8"),
      refused<ValueError>(
          "weak_scalar_negative", [] { maximum(ones({2}, uint8), -1); },
          "maximum: -1 does not fit uint8"),
      refused<ValueError>(
          "weak_scalar_unsigned",
          [] { multiply(ones({2}, int64), std::numeric_limits<std::uint64_t>::max()); },
          "multiply: 18446744073709551615 does not fit int64"),
      refused<ValueError>(
          "floor_divide_by_zero",
          [] {
            floor_divide(i32({2, 3}), zeros({3}, int32));
          },
          "floor_divide: integer division by zero in int32[2,3] and int32[3]"),
      refused<ValueError>(
          "remainder_by_zero", [] { remainder(i32({2}), 0); },
          "remainder: integer division by zero in int32[2] and int32[]"),
      refused<ValueError>(
          "floor_divide_in_place_by_zero", [] { floor_divide_(i32({2}), zeros({1}, int32)); },
          "floor_divide_: integer division by zero in int32[2] and int32[1]"),
      refused<ValueError>(
          "negative_integer_power", [] { pow(i32({2}), -2); },
          "pow: integers to a negative integer power in int32[2] and int32[]; cast to a float "
          "dtype "
          "first"),
      refused<ValueError>(
          "undefined_first", [] { add(Tensor(), f32({2})); }, "add: input 0 is undefined"),
      refused<ValueError>(
          "undefined_second", [] { where(truth({2}), f32({2}), Tensor()); },
          "where: input 2 is undefined"),
      refused<ValueError>(
          "undefined_unary", [] { exp(Tensor()); }, "exp: input 0 is undefined"),
      refused<ValueError>(
          "softplus_beta", [] { softplus(f32({2}), 0.0); },
          "softplus: beta must be above 0, not 0"),
      refused<ValueError>(
          "softplus_beta_nan", [] { softplus(f32({2}), kNan); },
          "softplus: beta must be above 0, not nan"),
  };
}

std::vector<ErrorCase> in_place_cases() {
  return {
      refused<ShapeError>(
          "in_place_grows",
          [] {
            add_(f32({3}), f32({2, 3}));
          },
          "add_: the result of float32[3] and float32[2,3] has shape [2,3] and cannot be written "
          "into "
          "float32[3]"),
      refused<ShapeError>(
          "in_place_shapes", [] { multiply_(f32({3}), f32({4})); },
          "multiply_: cannot broadcast float32[3] and float32[4]: sizes 3 and 4 differ at axis -1"),
      refused<DTypeError>(
          "float_into_integers", [] { add_(i32({2}), f32({2})); },
          "add_: the result of int32[2] and float32[2] is float32 and cannot be written into "
          "int32[2]"),
      refused<DTypeError>(
          "float_scalar_into_integers", [] { add_(i32({2}), 0.5); },
          "add_: the result of int32[2] and float32[] is float32 and cannot be written into "
          "int32[2]"),
      refused<DTypeError>(
          "integers_into_bool", [] { add_(truth({2}), i32({2})); },
          "add_: the result of bool[2] and int32[2] is int32 and cannot be written into bool[2]"),
      refused<DTypeError>(
          "exp_into_integers", [] { exp_(i32({2})); },
          "exp_: the result of int32[2] is float32 and cannot be written into int32[2]"),
      refused<ValueError>(
          "in_place_on_expanded", [] { add_(expand(f32({1}), {3}), 1); },
          "add_: cannot write into float32[3] with strides [0], which holds some element more than "
          "once; clone it first"),
      refused<ValueError>(
          "fill_expanded", [] { fill_(expand(f32({1}), {3}), 1); },
          "fill_: cannot write into float32[3] with strides [0], which holds some element more "
          "than "
          "once; clone it first"),
      refused<ValueError>(
          "copy_into_overlapping",
          [] {
            copy_(unfold(f32({4}), 0, 2, 1), f32({3, 2}));
          },
          "copy_: cannot write into float32[3,2] with strides [1,1], which holds some element more "
          "than once; clone it first"),
      refused<ShapeError>(
          "copy_shapes",
          [] {
            copy_(f32({2, 3}), f32({2}));
          },
          "copy_: cannot repeat float32[2] to [2,3]"),
      refused<ValueError>(
          "copy_undefined_source", [] { copy_(f32({2}), Tensor()); },
          "copy_: the source is undefined"),
      refused<ValueError>(
          "copy_undefined_output", [] { copy_(Tensor(), f32({2})); },
          "copy_: the output is undefined"),
      refused<ValueError>(
          "in_place_undefined", [] { add_(Tensor(), f32({2})); }, "add_: input 0 is undefined"),
      refused<ValueError>(
          "fill_out_of_range", [] { fill_(ones({2}, uint8), -1); }, "fill_: -1 does not fit uint8"),
      refused<DTypeError>(
          "masked_fill_mask", [] { masked_fill_(f32({2}), i32({2}), 0); },
          "masked_fill_: the mask must be bool, not int32[2]"),
      refused<ShapeError>(
          "masked_fill_shape",
          [] {
            masked_fill_(f32({2}), truth({3, 2}), 0);
          },
          "masked_fill_: mask bool[3,2] and value float32[] do not broadcast to float32[2]"),
      refused<DTypeError>(
          "masked_fill_float_into_integers", [] { masked_fill_(i32({2}), truth({2}), 0.5); },
          "masked_fill_: cannot write the float 0.5 into int32[2]; cast one of them first"),
      refused<DTypeError>(
          "index_put_kind", [] { index_put_(i32({3}), {0}, f32({})); },
          "index_put: cannot write float32[] into int32[3]; cast it with astype first"),
      refused<ShapeError>(
          "index_put_shape",
          [] {
            index_put_(f32({3, 4}), {Slice{0, 2}}, f32({3}));
          },
          "index_put: value float32[3] does not broadcast to the indexed shape [2,4] of "
          "float32[3,4]"),
      refused<IndexError>(
          "index_put_position",
          [] {
            index_put_(f32({3, 4}), {Slice{}, positions({4})}, 1);
          },
          "index_put: index 4 is out of range for axis 1 of size 4 in float32[3,4]"),
      refused<ValueError>(
          "index_put_on_expanded", [] { index_put_(expand(f32({1}), {3}), {positions({0})}, 1); },
          "index_put: cannot write into float32[3] with strides [0], which holds some element more "
          "than once; clone it first"),
  };
}

std::vector<ErrorCase> reduction_cases() {
  return {
      refused<IndexError>(
          "sum_axis",
          [] {
            sum(f32({2, 3}), 2);
          },
          "sum: axis 2 is out of range for 2 dimensions (-2 to 1)"),
      refused<IndexError>(
          "sum_axis_below",
          [] {
            sum(f32({2, 3}), -3);
          },
          "sum: axis -3 is out of range for 2 dimensions (-2 to 1)"),
      refused<IndexError>(
          "sum_axis_least",
          [] {
            sum(f32({2, 3}), kMin64);
          },
          "sum: axis -9223372036854775808 is out of range for 2 dimensions (-2 to 1)"),
      refused<IndexError>(
          "sum_axis_of_scalar", [] { sum(f32({}), 0); },
          "sum: axis 0 given for a tensor without axes (0-d)"),
      refused<ValueError>(
          "sum_axis_twice",
          [] {
            sum(f32({2, 3}), {0, 1, -2});
          },
          "sum: axis -2 is given twice in [0,1,-2]"),
      refused<ValueError>(
          "sum_undefined", [] { sum(Tensor()); }, "sum: input 0 is undefined"),
      refused<ValueError>(
          "amax_of_nothing",
          [] {
            amax(f32({0, 3}), 0);
          },
          "amax: no elements to take the greatest or least of in float32[0,3]"),
      refused<ValueError>(
          "max_of_nothing", [] { max(f32({0})); },
          "max: no elements to take the greatest or least of in float32[0]"),
      refused<IndexError>(
          "min_axis", [] { min(f32({2}), 1); },
          "min: axis 1 is out of range for 1 dimensions (-1 to 0)"),
      refused<ValueError>(
          "argmax_of_nothing",
          [] {
            argmax(f32({2, 0}), 1);
          },
          "argmax: no elements to take the position of in float32[2,0]"),
      refused<IndexError>(
          "argmin_axis",
          [] {
            argmin(f32({2, 3}), 5);
          },
          "argmin: axis 5 is out of range for 2 dimensions (-2 to 1)"),
      refused<ValueError>(
          "var_correction", [] { var(f32({2}), {}, kNan); }, "var: correction is NaN"),
      refused<ValueError>(
          "norm_order", [] { norm(f32({2}), kNan); }, "norm: the order is NaN"),
      refused<ValueError>(
          "norm_least_of_nothing", [] { norm(f32({0}), std::numeric_limits<double>::infinity()); },
          "norm: no elements to take the greatest or least of in float32[0]"),
      refused<IndexError>(
          "norm_axis", [] { norm(f32({2}), 1.0, 3); },
          "norm: axis 3 is out of range for 1 dimensions (-1 to 0)"),
      refused<IndexError>(
          "softmax_axis",
          [] {
            softmax(f32({2, 3}), 2);
          },
          "softmax: axis 2 is out of range for 2 dimensions (-2 to 1)"),
      refused<IndexError>(
          "cumulative_sum_axis", [] { cumulative_sum(f32({2}), -2); },
          "cumulative_sum: axis -2 is out of range for 1 dimensions (-1 to 0)"),
      refused<ValueError>(
          "log_softmax_undefined", [] { log_softmax(Tensor()); },
          "log_softmax: input 0 is undefined"),
      refused<ValueError>(
          "logsumexp_axis_twice",
          [] {
            logsumexp(f32({2, 3}), {1, 1});
          },
          "logsumexp: axis 1 is given twice in [1,1]"),
  };
}

std::vector<ErrorCase> creation_cases() {
  return {
      refused<ValueError>(
          "zeros_negative",
          [] {
            zeros({2, -1});
          },
          "zeros: negative size -1 in shape [2,-1]"),
      refused<ShapeError>(
          "ones_overflow",
          [] {
            ones({std::int64_t{1} << 62, 4}, int8);
          },
          "ones: shape [4611686018427387904,4] of int8 has more bytes than an address can count"),
      refused<ShapeError>(
          "empty_bytes_overflow", [] { empty({kMax64}); },
          "empty: shape [9223372036854775807] of float32 has more bytes than an address can count"),
      refused<OutOfMemory>(
          "zeros_out_of_memory",
          [] {
            PoolAllocator pool(std::size_t{1} << 20);
            const AllocatorScope scope(pool);
            zeros({1024, 1024, 1024});
          },
          "zeros: no memory for float32[1024,1024,1024]: allocate: out of memory: the pool "
          "allocator "
          "was asked for 4294967296 bytes with 0 bytes live; its limit is 1048576 bytes"),
      refused<ShapeError>(
          "too_many_dimensions", [] { zeros(std::vector<std::int64_t>(17, 1)); },
          "dims: a tensor has at most 16 dimensions, not 17"),
      refused<ValueError>(
          "full_out_of_range", [] { full({2}, 256, uint8); }, "full: 256 does not fit uint8"),
      refused<ValueError>(
          "arange_step", [] { arange(0, 5, 0); },
          "arange: the step is 0 in start 0, stop 5, step 0"),
      refused<ValueError>(
          "linspace_count", [] { linspace(0, 1, -1); }, "linspace: the count is negative: -1"),
      refused<ValueError>(
          "scalar_out_of_range", [] { Tensor::scalar(-1, uint16); },
          "scalar: -1 does not fit uint16"),
      refused<ShapeError>(
          "of_shape",
          [] {
            Tensor::of(std::vector<float>{1, 2, 3}, {2, 2});
          },
          "Tensor::of: 3 values do not fill shape [2,2]"),
      refused<ValueError>(
          "from_blob_null", [] { Tensor::from_blob(nullptr, {2}, float32); },
          "from_blob: null pointer for shape [2]"),
      refused<ShapeError>(
          "from_blob_strides",
          [] {
            float one = 0;
            Tensor::from_blob(&one, {1, 1}, Dims{1}, float32);
          },
          "from_blob: shape [1,1] and strides [1] differ in length"),
      refused<ShapeError>(
          "tril_vector", [] { tril(f32({4})); },
          "tril: float32[4] is no matrix: it needs at least 2 dimensions"),
      refused<ValueError>(
          "clone_undefined", [] { clone(Tensor()); }, "clone: input 0 is undefined"),
      refused<ValueError>(
          "contiguous_undefined", [] { contiguous(Tensor()); }, "contiguous: input 0 is undefined"),
      refused<ValueError>(
          "astype_undefined", [] { astype(Tensor(), int8); }, "astype: input 0 is undefined"),
      refused<DTypeError>(
          "unknown_dtype", [] { dtype_from_name("float8"); },
          "dtype: unknown name 'float8'; known are bool, int8, int16, int32, int64, uint8, uint16, "
          "uint32, uint64, float16, bfloat16, float32, float64"),
      refused<DTypeError>(
          "data_of_other_dtype", [] { f32({2}).data<double>(); },
          "data: asked for float64 of a tensor float32[2]"),
      refused<ValueError>(
          "data_undefined", [] { Tensor().data<float>(); }, "data: the tensor is undefined"),
      refused<DTypeError>(
          "to_vector_of_other_dtype", [] { f32({2}).to_vector<std::int32_t>(); },
          "to_vector: asked for int32 of a tensor float32[2]"),
      refused<OutOfMemory>(
          "to_vector_of_expanded",
          [] { expand(f32({1}), {std::int64_t{1} << 60}).to_vector<float>(); },
          "to_vector: no memory for the elements of float32[1152921504606846976]"),
      refused<ShapeError>(
          "item_of_many", [] { f32({2}).item(); },
          "item: float32[2] does not hold exactly one element"),
      refused<IndexError>(
          "size_axis", [] { f32({2}).size(1); },
          "size: axis 1 is out of range for 1 dimensions (-1 to 0)"),
      refused<ValueError>(
          "size_undefined", [] { Tensor().size(0); }, "size: the tensor is undefined"),
  };
}

std::vector<ErrorCase> view_cases() {
  return {
      refused<ShapeError>(
          "reshape_count",
          [] {
            reshape(f32({2, 3}), {4, 2});
          },
          "reshape: cannot make [4,2] of float32[2,3]: 8 elements instead of 6"),
      refused<ShapeError>(
          "reshape_unknown",
          [] {
            reshape(f32({2, 3}), {-1, 4});
          },
          "reshape: no size for the -1 in [-1,4] fits float32[2,3] of 6 elements"),
      refused<ValueError>(
          "reshape_two_unknown",
          [] {
            reshape(f32({2, 3}), {-1, -1});
          },
          "reshape: more than one size is -1 in [-1,-1]"),
      refused<ValueError>(
          "reshape_negative",
          [] {
            reshape(f32({2, 3}), {-2, 3});
          },
          "reshape: negative size -2 in shape [-2,3]"),
      refused<ShapeError>(
          "view_of_transposed",
          [] {
            matrix_transpose(f32({2, 3})).view({6});
          },
          "view: float32[3,2] with strides [1,3] cannot be seen as [6] without a copy; "
          "reshape makes one"),
      refused<ShapeError>(
          "expand_shape",
          [] {
            expand(f32({2, 3}), {2, 4});
          },
          "expand: cannot repeat float32[2,3] to [2,4]"),
      refused<ValueError>(
          "expand_unknown",
          [] {
            expand(f32({3}), {-1, 3});
          },
          "expand: -1 stands for no axis of float32[3] in [-1,3]"),
      refused<ValueError>(
          "expand_negative", [] { expand(f32({1}), {-2}); },
          "expand: negative size -2 in shape [-2]"),
      refused<ShapeError>(
          "broadcast_to_fewer_axes",
          [] {
            broadcast_to(f32({2, 3}), {3});
          },
          "broadcast_to: cannot repeat float32[2,3] to [3]"),
      refused<ShapeError>(
          "as_strided_outside",
          [] {
            as_strided(f32({6}), {3, 3}, {3, 1}, 0);
          },
          "as_strided: shape [3,3] with strides [3,1] and offset 0 reaches elements 0 to 8 of a "
          "storage of 6"),
      refused<ShapeError>(
          "as_strided_absurd", [] { as_strided(f32({6}), {3}, {kMax64}, 0); },
          "as_strided: 9223372036854775807 * 2 leaves the 64-bit range"),
      refused<ValueError>(
          "permute_axes",
          [] {
            permute_dims(f32({2, 3}), {0});
          },
          "permute_dims: axes [0] do not name every axis of float32[2,3]"),
      refused<IndexError>(
          "transpose_axis",
          [] {
            f32({2, 3}).transpose(0, 2);
          },
          "transpose: axis 2 is out of range for 2 dimensions (-2 to 1)"),
      refused<ShapeError>(
          "transpose_vector", [] { f32({3}).mT(); },
          "matrix_transpose: needs at least 2 axes, not float32[3]"),
      refused<ValueError>(
          "squeeze_size",
          [] {
            squeeze(f32({2, 1}), 0);
          },
          "squeeze: axis 0 of float32[2,1] is not of size 1"),
      refused<ShapeError>(
          "expand_dims_too_many", [] { expand_dims(f32(Dims(16, 1)), {0}); },
          "expand_dims: would give float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] 17 dimensions, more "
          "than "
          "16"),
      refused<ValueError>(
          "flip_twice",
          [] {
            flip(f32({2, 3}), {0, -2});
          },
          "flip: axis -2 is given twice in [0,-2]"),
      refused<ValueError>(
          "unfold_window",
          [] {
            unfold(f32({2, 3}), 1, 4, 1);
          },
          "unfold: a window of 4 does not fit axis 1 of float32[2,3]"),
      refused<ValueError>(
          "unfold_step", [] { unfold(f32({3}), 0, 1, 0); }, "unfold: step must be above 0, not 0"),
      refused<ValueError>(
          "slice_step",
          [] {
            slice(f32({3}), 0, {0, 2, 0});
          },
          "slice: step must not be 0"),
      refused<IndexError>(
          "select_one_past",
          [] {
            select(f32({2, 3}), 1, 3);
          },
          "select: index 3 is out of range for axis 1 of size 3 in float32[2,3]"),
      refused<IndexError>(
          "narrow_past_the_end", [] { narrow(f32({4}), 0, 2, 3); },
          "narrow: 3 elements from 2 on leave axis 0 of float32[4]"),
      refused<ShapeError>(
          "split_sizes",
          [] {
            split(f32({4}), std::vector<std::int64_t>{1, 2});
          },
          "split: sizes add up to 3, not to axis 0 of float32[4]"),
      refused<ValueError>(
          "unstack_expanded", [] { unstack(expand(f32({1}), {std::int64_t{1} << 40})); },
          "unstack: would make 1099511627776 tensors of float32[1099511627776]"),
  };
}

std::vector<ErrorCase> movement_cases() {
  return {
      refused<ValueError>(
          "concat_nothing", [] { concat({}); }, "concat: needs at least one tensor"),
      refused<ShapeError>(
          "concat_sizes",
          [] {
            concat({f32({2, 3}), f32({2, 4})}, 0);
          },
          "concat: tensor 1 is float32[2,4] and tensor 0 is float32[2,3]: sizes 4 and 3 differ at "
          "axis 1; only axis 0 may differ"),
      refused<ShapeError>(
          "stack_shapes",
          [] {
            stack({f32({2}), f32({3})});
          },
          "stack: tensor 1 is float32[3] and tensor 0 is float32[2]; all must have one shape"),
      refused<DTypeError>(
          "concat_dtypes",
          [] {
            concat({ones({1}, uint64), ones({1}, int8)});
          },
          "concat: no integer dtype holds both uint64 and int8 of uint64[1] and int8[1]; cast one "
          "of "
          "them with astype"),
      refused<ValueError>(
          "repeat_negative", [] { repeat(f32({2}), -1); }, "repeat: negative count -1"),
      refused<ValueError>(
          "pad_widths",
          [] {
            pad(f32({2, 3}), {1, 1});
          },
          "pad: float32[2,3] takes 4 widths (before and after, axis by axis), not 2"),
      refused<IndexError>(
          "take_one_past",
          [] {
            take(f32({2, 3}), positions({0, 3}), 1);
          },
          "take: index 3 is out of range for axis 1 of size 3 in float32[2,3]"),
      refused<IndexError>(
          "take_one_before",
          [] {
            take(f32({2, 3}), positions({-3}), 0);
          },
          "take: index -3 is out of range for axis 0 of size 2 in float32[2,3]"),
      refused<DTypeError>(
          "take_float_indices", [] { take(f32({2}), f32({1}), 0); },
          "take: indices must be of an integer dtype, not float32[1]"),
      refused<ShapeError>(
          "gather_axes",
          [] {
            gather(f32({2, 3}), 0, positions({1}));
          },
          "gather: indices int64[1] and x float32[2,3] differ in their number of axes"),
      refused<DTypeError>(
          "scatter_kind", [] { scatter(i32({3}), 0, positions({1}), f32({1})); },
          "scatter: cannot write float32[1] into int32[3]; cast it with astype first"),
      refused<IndexError>(
          "index_too_many",
          [] {
            index(f32({2}), {0, 0});
          },
          "index: 2 axes are indexed but float32[2] has 1"),
      refused<IndexError>(
          "index_mask",
          [] {
            index(f32({2, 3}), {truth({4})});
          },
          "index: mask bool[4] does not match axis 0 of size 2 in float32[2,3]: it has size 4"),
      refused<IndexError>(
          "index_ellipses",
          [] {
            index(f32({2, 3}), {Ellipsis{}, Ellipsis{}});
          },
          "index: 2 ellipses; at most one can stand for the axes that are not named"),
      refused<IndexError>(
          "index_tensors",
          [] {
            index(f32({2, 3}), {positions({0, 1}), positions({0, 1, 2})});
          },
          "index: index tensors of shapes [2] and [3] do not broadcast against each other"),
      refused<ValueError>(
          "topk_k",
          [] {
            topk(f32({2, 3}), 4);
          },
          "topk: k is 4, but axis 1 of float32[2,3] has 3 elements"),
      refused<ValueError>(
          "searchsorted_weak_scalar", [] { searchsorted(ones({3}, int8), 300); },
          "searchsorted: 300 does not fit int8"),
      refused<IndexError>(
          "argsort_axis", [] { argsort(f32({2}), 1); },
          "argsort: axis 1 is out of range for 1 dimensions (-1 to 0)"),
      refused<ValueError>(
          "unique_undefined", [] { unique_counts(Tensor()); },
          "unique_counts: the tensor is undefined"),
  };
}

std::string case_name(const ::testing::TestParamInfo<ErrorCase>& info) { return info.param.name; }

/// Keeps gtest from printing the bytes of a case.
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.name; }

INSTANTIATE_TEST_SUITE_P(Elementwise, Errors, ::testing::ValuesIn(elementwise_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(InPlace, Errors, ::testing::ValuesIn(in_place_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Reductions, Errors, ::testing::ValuesIn(reduction_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Creation, Errors, ::testing::ValuesIn(creation_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Views, Errors, ::testing::ValuesIn(view_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Movement, Errors, ::testing::ValuesIn(movement_cases()), case_name);

}  // namespace
}  // namespace baregrad
