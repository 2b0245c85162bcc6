// Attributes of op calls: one small struct per family of ops, plain data. Which op takes which
// struct stands in ops.def. The struct's fields() is the only description of it: comparing,
// hashing and printing follow from there (attr_types.h).
#pragma once

#include <cstdint>
#include <tuple>

#include "baregrad/activation.h"
#include "baregrad/device.h"
#include "baregrad/dims.h"
#include "baregrad/dtype.h"
#include "ops/attr_kind.h"

namespace baregrad {

/// A set of axes, one bit each.
struct AxisMask {
  std::uint32_t bits = 0;
  constexpr bool has(int axis) const noexcept { return (bits >> axis & 1U) != 0; }
  constexpr bool empty() const noexcept { return bits == 0; }
  friend constexpr bool operator==(AxisMask, AxisMask) noexcept = default;
};

/// How the losses of a batch become the result.
enum class LossReduction : std::uint8_t { None, Mean, Sum };

/// The name of a member and where it is.
template <class Struct, class Member>
struct Field {
  const char* name;
  Member Struct::*member;
};
template <class Struct, class Member>
Field(const char*, Member Struct::*) -> Field<Struct, Member>;

// ---- Elementwise, reductions, products

/// Numbers of an elementwise op: slope, alpha, beta and threshold, a factor. Kernels read both.
struct NumbersAttrs {
  double values[2] = {0.0, 0.0};
  static constexpr auto fields() { return std::tuple(Field{"numbers", &NumbersAttrs::values}); }
};

/// maximum and minimum. `to_first`: where both are equal the whole gradient goes to the first
/// input (clip with one bound); otherwise each takes half.
struct TiesAttrs {
  bool to_first = false;
  static constexpr auto fields() { return std::tuple(Field{"to_first", &TiesAttrs::to_first}); }
};

struct ReduceAttrs {
  AxisMask axes;
  bool keepdims = false;
  DType dtype = DType::Float32;  ///< of the result, where the op lets the caller choose
  double correction = 0.0;       ///< var and std
  static constexpr auto fields() {
    return std::tuple(Field{"axes", &ReduceAttrs::axes}, Field{"keepdims", &ReduceAttrs::keepdims},
                      Field{"dtype", &ReduceAttrs::dtype},
                      Field{"correction", &ReduceAttrs::correction});
  }
};

struct ArgReduceAttrs {
  int axis = -1;  ///< -1: over the flattened tensor
  bool keepdims = false;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &ArgReduceAttrs::axis},
                      Field{"keepdims", &ArgReduceAttrs::keepdims});
  }
};

struct ProductAttrs {
  Activation activation = Activation::None;
  bool accumulate = false;  ///< the product is added to what the output holds
  static constexpr auto fields() {
    return std::tuple(Field{"activation", &ProductAttrs::activation},
                      Field{"accumulate", &ProductAttrs::accumulate});
  }
};

// ---- Views

struct AsStridedAttrs {
  Dims shape;
  Dims strides;
  std::int64_t offset = 0;
  Dims input_strides;  ///< where the input lies, for the gradient
  std::int64_t input_offset = 0;
  static constexpr auto fields() {
    return std::tuple(Field{"shape", &AsStridedAttrs::shape},
                      Field{"strides", &AsStridedAttrs::strides},
                      Field{"offset", &AsStridedAttrs::offset},
                      Field{"input_strides", &AsStridedAttrs::input_strides},
                      Field{"input_offset", &AsStridedAttrs::input_offset});
  }
};

/// One number of each per axis.
struct SliceAttrs {
  Dims starts;
  Dims steps;
  Dims sizes;
  static constexpr auto fields() {
    return std::tuple(Field{"starts", &SliceAttrs::starts}, Field{"steps", &SliceAttrs::steps},
                      Field{"sizes", &SliceAttrs::sizes});
  }
};

struct OrderAttrs {
  Dims axes;  ///< axis i of the result is axis axes[i] of the input
  static constexpr auto fields() { return std::tuple(Field{"axes", &OrderAttrs::axes}); }
};

struct ShapeAttrs {
  Dims shape;
  static constexpr auto fields() { return std::tuple(Field{"shape", &ShapeAttrs::shape}); }
};

struct AxesAttrs {
  AxisMask axes;
  int ndim = 0;  ///< expand_dims: dimensions of the result
  static constexpr auto fields() {
    return std::tuple(Field{"axes", &AxesAttrs::axes}, Field{"ndim", &AxesAttrs::ndim});
  }
};

struct WindowsAttrs {
  int axis = 0;
  std::int64_t size = 0;
  std::int64_t step = 1;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &WindowsAttrs::axis}, Field{"size", &WindowsAttrs::size},
                      Field{"step", &WindowsAttrs::step});
  }
};

struct DiagonalAttrs {
  std::int64_t offset = 0;
  int axis0 = 0;
  int axis1 = 1;
  static constexpr auto fields() {
    return std::tuple(Field{"offset", &DiagonalAttrs::offset},
                      Field{"axis0", &DiagonalAttrs::axis0}, Field{"axis1", &DiagonalAttrs::axis1});
  }
};

// ---- Creation, copies

struct CastAttrs {
  DType dtype = DType::Float32;
  static constexpr auto fields() { return std::tuple(Field{"dtype", &CastAttrs::dtype}); }
};

struct FillAttrs {
  Dims shape;
  DType dtype = DType::Float32;
  std::uint64_t element = 0;  ///< one element of the dtype, in the first bytes
  static constexpr auto fields() {
    return std::tuple(Field{"shape", &FillAttrs::shape}, Field{"dtype", &FillAttrs::dtype},
                      Field{"element", &FillAttrs::element});
  }
};

struct ArangeAttrs {
  std::int64_t count = 0;
  DType dtype = DType::Int64;
  bool integers = false;  ///< start and step are the integers below, modulo 2^64
  std::uint64_t int_start = 0;
  std::uint64_t int_step = 0;
  double start = 0.0;
  double step = 0.0;
  static constexpr auto fields() {
    return std::tuple(Field{"count", &ArangeAttrs::count}, Field{"dtype", &ArangeAttrs::dtype},
                      Field{"integers", &ArangeAttrs::integers},
                      Field{"int_start", &ArangeAttrs::int_start},
                      Field{"int_step", &ArangeAttrs::int_step},
                      Field{"start", &ArangeAttrs::start}, Field{"step", &ArangeAttrs::step});
  }
};

struct LinspaceAttrs {
  std::int64_t count = 0;
  DType dtype = DType::Float32;
  bool endpoint = true;  ///< the last element is `stop`
  double start = 0.0;
  double stop = 0.0;
  std::uint64_t first = 0;  ///< the first and last element as bytes of the dtype
  std::uint64_t last = 0;
  static constexpr auto fields() {
    return std::tuple(Field{"count", &LinspaceAttrs::count}, Field{"dtype", &LinspaceAttrs::dtype},
                      Field{"endpoint", &LinspaceAttrs::endpoint},
                      Field{"start", &LinspaceAttrs::start}, Field{"stop", &LinspaceAttrs::stop},
                      Field{"first", &LinspaceAttrs::first}, Field{"last", &LinspaceAttrs::last});
  }
};

struct EyeAttrs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t diagonal = 0;
  DType dtype = DType::Float32;
  static constexpr auto fields() {
    return std::tuple(Field{"rows", &EyeAttrs::rows}, Field{"columns", &EyeAttrs::columns},
                      Field{"diagonal", &EyeAttrs::diagonal}, Field{"dtype", &EyeAttrs::dtype});
  }
};

struct TriangleAttrs {
  std::int64_t diagonal = 0;
  static constexpr auto fields() { return std::tuple(Field{"diagonal", &TriangleAttrs::diagonal}); }
};

// ---- Random numbers

/// low and high of random_uniform, mean and deviation of random_normal.
struct RandomRealAttrs {
  Dims shape;
  DType dtype = DType::Float32;
  double first = 0.0;
  double second = 1.0;
  bool standard = false;  ///< called as rand or randn, which messages then name
  static constexpr auto fields() {
    return std::tuple(
        Field{"shape", &RandomRealAttrs::shape}, Field{"dtype", &RandomRealAttrs::dtype},
        Field{"first", &RandomRealAttrs::first}, Field{"second", &RandomRealAttrs::second},
        Field{"standard", &RandomRealAttrs::standard});
  }
};

struct RandomIntAttrs {
  Dims shape;
  DType dtype = DType::Int64;
  std::int64_t low = 0;
  std::int64_t high = 0;
  static constexpr auto fields() {
    return std::tuple(Field{"shape", &RandomIntAttrs::shape},
                      Field{"dtype", &RandomIntAttrs::dtype}, Field{"low", &RandomIntAttrs::low},
                      Field{"high", &RandomIntAttrs::high});
  }
};

struct RandomPermAttrs {
  std::int64_t count = 0;
  DType dtype = DType::Int64;
  static constexpr auto fields() {
    return std::tuple(Field{"count", &RandomPermAttrs::count},
                      Field{"dtype", &RandomPermAttrs::dtype});
  }
};

/// Shape, dtype and p are read where no input holds the probabilities.
struct BernoulliAttrs {
  Dims shape;
  DType dtype = DType::Float32;
  double p = 0.0;
  static constexpr auto fields() {
    return std::tuple(Field{"shape", &BernoulliAttrs::shape},
                      Field{"dtype", &BernoulliAttrs::dtype}, Field{"p", &BernoulliAttrs::p});
  }
};

// ---- Along axes

struct ScanAttrs {
  int axis = 0;
  DType dtype = DType::Float32;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &ScanAttrs::axis}, Field{"dtype", &ScanAttrs::dtype});
  }
};

struct SoftmaxAttrs {
  int axis = 0;
  DType dtype = DType::Float32;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &SoftmaxAttrs::axis}, Field{"dtype", &SoftmaxAttrs::dtype});
  }
};

/// The result keeps the axes, with size 1.
struct LogSumExpAttrs {
  AxisMask axes;
  static constexpr auto fields() { return std::tuple(Field{"axes", &LogSumExpAttrs::axes}); }
};

struct ConcatAttrs {
  int axis = 0;
  static constexpr auto fields() { return std::tuple(Field{"axis", &ConcatAttrs::axis}); }
};

struct RollAttrs {
  Dims shifts;  ///< per axis, from 0 to below its size
  static constexpr auto fields() { return std::tuple(Field{"shifts", &RollAttrs::shifts}); }
};

struct PadAttrs {
  Dims before;
  Dims after;
  std::uint64_t element = 0;  ///< of the border, as bytes of the dtype
  static constexpr auto fields() {
    return std::tuple(Field{"before", &PadAttrs::before}, Field{"after", &PadAttrs::after},
                      Field{"element", &PadAttrs::element});
  }
};

// ---- Positions

/// take and index: one tensor of positions for each of the axes from `axis` on.
struct PositionsAttrs {
  int axis = 0;
  Dims callers_axes;  ///< the same axes as the caller numbered them, for messages
  Dims callers_shape;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &PositionsAttrs::axis},
                      Field{"callers_axes", &PositionsAttrs::callers_axes},
                      Field{"callers_shape", &PositionsAttrs::callers_shape});
  }
};

/// The same for writing into the output.
struct IndexPutAttrs {
  int axis = 0;
  bool accumulate = false;
  Dims callers_axes;
  Dims callers_shape;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &IndexPutAttrs::axis},
                      Field{"accumulate", &IndexPutAttrs::accumulate},
                      Field{"callers_axes", &IndexPutAttrs::callers_axes},
                      Field{"callers_shape", &IndexPutAttrs::callers_shape});
  }
};

struct AlongAttrs {
  int axis = 0;
  static constexpr auto fields() { return std::tuple(Field{"axis", &AlongAttrs::axis}); }
};

/// Ops whose result is as long as there are true elements: counted before the call.
struct FoundAttrs {
  std::int64_t count = 0;
  static constexpr auto fields() { return std::tuple(Field{"count", &FoundAttrs::count}); }
};

// ---- Order

/// Outputs of sort and unique that the caller wants, or-ed. unique always gives its values.
enum OrderOutputs : int {
  kOrderValues = 1,
  kOrderIndices = 2,
  kOrderInverse = 4,
  kOrderCounts = 8,
};

struct SortAttrs {
  int axis = 0;
  bool descending = false;
  int outputs = kOrderValues;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &SortAttrs::axis}, Field{"descending", &SortAttrs::descending},
                      Field{"outputs", &SortAttrs::outputs});
  }
};

struct TopKAttrs {
  int axis = 0;
  std::int64_t k = 0;
  bool largest = true;
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &TopKAttrs::axis}, Field{"k", &TopKAttrs::k},
                      Field{"largest", &TopKAttrs::largest});
  }
};

struct SearchSortedAttrs {
  bool right = false;  ///< after equal values
  static constexpr auto fields() { return std::tuple(Field{"right", &SearchSortedAttrs::right}); }
};

struct UniqueAttrs {
  int outputs = 0;
  static constexpr auto fields() { return std::tuple(Field{"outputs", &UniqueAttrs::outputs}); }
};

// ---- Networks

struct ConvAttrs {
  Dims stride;
  Dims padding;
  Dims dilation;
  std::int64_t groups = 1;
  Dims size;  ///< conv2d_input: of the image; conv2d_weight: of the filters
  static constexpr auto fields() {
    return std::tuple(Field{"stride", &ConvAttrs::stride}, Field{"padding", &ConvAttrs::padding},
                      Field{"dilation", &ConvAttrs::dilation}, Field{"groups", &ConvAttrs::groups},
                      Field{"size", &ConvAttrs::size});
  }
};

struct PoolAttrs {
  Dims kernel;
  Dims stride;
  Dims padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  bool positions = false;  ///< max_pool2d: the second result is wanted
  Dims image;              ///< avg_pool2d_backward: height and width
  static constexpr auto fields() {
    return std::tuple(Field{"kernel", &PoolAttrs::kernel}, Field{"stride", &PoolAttrs::stride},
                      Field{"padding", &PoolAttrs::padding},
                      Field{"ceil_mode", &PoolAttrs::ceil_mode},
                      Field{"count_include_pad", &PoolAttrs::count_include_pad},
                      Field{"positions", &PoolAttrs::positions}, Field{"image", &PoolAttrs::image});
  }
};

/// Gradients that a *_backward op computes, or-ed; the others come back empty.
enum WantedGradients : int { kWantX = 1, kWantWeight = 2, kWantBias = 4 };

/// layer_norm, rms_norm and their gradients.
struct NormAttrs {
  int axis = 0;  ///< the first normalised one
  double eps = 0.0;
  int wanted = 0;  ///< of the gradients
  static constexpr auto fields() {
    return std::tuple(Field{"axis", &NormAttrs::axis}, Field{"eps", &NormAttrs::eps},
                      Field{"wanted", &NormAttrs::wanted});
  }
};

struct BatchNormAttrs {
  double eps = 0.0;
  bool training = false;
  int wanted = 0;  ///< of the gradients
  static constexpr auto fields() {
    return std::tuple(Field{"eps", &BatchNormAttrs::eps},
                      Field{"training", &BatchNormAttrs::training},
                      Field{"wanted", &BatchNormAttrs::wanted});
  }
};

struct CrossEntropyAttrs {
  LossReduction reduction = LossReduction::Mean;
  double smoothing = 0.0;
  std::int64_t ignored = -100;  ///< the class that takes no part
  static constexpr auto fields() {
    return std::tuple(Field{"reduction", &CrossEntropyAttrs::reduction},
                      Field{"smoothing", &CrossEntropyAttrs::smoothing},
                      Field{"ignored", &CrossEntropyAttrs::ignored});
  }
};

struct AttentionAttrs {
  double scale = 1.0;
  bool causal = false;
  static constexpr auto fields() {
    return std::tuple(Field{"scale", &AttentionAttrs::scale},
                      Field{"causal", &AttentionAttrs::causal});
  }
};

struct ToDeviceAttrs {
  Device to;
  Device from;  ///< where the input lies, for the gradient
  static constexpr auto fields() {
    return std::tuple(Field{"to", &ToDeviceAttrs::to}, Field{"from", &ToDeviceAttrs::from});
  }
};

// ---- Decompositions

/// `complete`: a square Q.
struct QrAttrs {
  bool complete = false;
  static constexpr auto fields() { return std::tuple(Field{"complete", &QrAttrs::complete}); }
};

/// `full`: square U and Vh.
struct SvdAttrs {
  bool full = false;
  DType dtype = DType::Float32;  ///< of the results, which are rounded once
  static constexpr auto fields() {
    return std::tuple(Field{"full", &SvdAttrs::full}, Field{"dtype", &SvdAttrs::dtype});
  }
};

// ---- Optimizers

/// The update rule, with its operands in order. All operands have one shape. The second one is only
/// read, the others are updated.
enum class StepRule : std::uint8_t {
  Sgd,                      // parameter, gradient
  SgdMomentum,              // parameter, gradient, momentum
  Adam,                     // parameter, gradient, mean, mean of squares
  RmsProp,                  // parameter, gradient, mean of squares
  RmsPropCentered,          // parameter, gradient, mean of squares, mean
  RmsPropMomentum,          // parameter, gradient, mean of squares, momentum
  RmsPropCenteredMomentum,  // parameter, gradient, mean of squares, mean, momentum
  Adagrad,                  // parameter, gradient, sum of squares
  Lion,                     // parameter, gradient, mean
  Lerp,                     // average, value: average += rate1 * (value - average)
  Scale,                    // value: times lr
  Clamp,                    // value: into [-lr, lr], NaN stays
};

/// The numbers of one step, in double, computed once for all tensors that share them.
struct StepNumbers {
  double lr = 0;            ///< of the update; Adam's includes the bias correction of the mean
  double sign = 1;          ///< of the gradient: -1 for ascent
  double shrink = 1;        ///< factor of the parameter, applied first: 1 - lr * weight_decay
  double weight_decay = 0;  ///< times the parameter, added to the gradient; 0 adds nothing
  double beta1 = 0;         ///< decay of the mean, or of the momentum
  double rate1 = 0;         ///< weight of the gradient in it
  double beta2 = 0;         ///< likewise of squares; of Lion's mean
  double rate2 = 0;
  double scale2 = 1;  ///< Adam: 1 / sqrt(1 - beta2^t)
  double eps = 0;
  double momentum = 0;    ///< RmsProp's
  bool nesterov = false;  ///< SgdMomentum
  bool first = false;     ///< SgdMomentum: first step, the momentum becomes the gradient
};

/// One step over many tensors. Outputs: for each item its first operand and what the rule keeps
/// beside it; inputs: the second operand of each item.
struct StepAttrs {
  StepRule rule = StepRule::Sgd;
  int operands = 2;  ///< of an item, the input among them
  StepNumbers numbers;
  static constexpr auto fields() {
    return std::tuple(Field{"rule", &StepAttrs::rule}, Field{"operands", &StepAttrs::operands},
                      Field{"numbers", &StepAttrs::numbers});
  }
};

// ---- A reference to any of them

/// The kind of a struct.
template <class T>
inline constexpr AttrKind kAttrKindOf = AttrKind::None;
#define BG_ROW(name) \
  template <>        \
  inline constexpr AttrKind kAttrKindOf<name##Attrs> = AttrKind::name;
BG_ATTR_KINDS(BG_ROW)
#undef BG_ROW

template <class T>
concept AttrStruct = kAttrKindOf<T>
!= AttrKind::None;

[[noreturn, gnu::cold]] void throw_wrong_attrs(AttrKind wanted, AttrKind there);

/// Which struct, and where; none for an op that takes no attributes. Plain data, borrowed.
class AttrsRef {
 public:
  constexpr AttrsRef() noexcept = default;
  constexpr AttrsRef(AttrKind kind, const void* data) noexcept : data_(data), kind_(kind) {}
  template <AttrStruct T>
  constexpr AttrsRef(const T& attrs) noexcept : data_(&attrs), kind_(kAttrKindOf<T>) {}

  constexpr AttrKind kind() const noexcept { return kind_; }
  constexpr const void* data() const noexcept { return data_; }
  constexpr bool empty() const noexcept { return kind_ == AttrKind::None; }
  /// The struct; a mistake in the engine if it is another one.
  template <AttrStruct T>
  const T& as() const {
    if (kind_ != kAttrKindOf<T>) [[unlikely]]
      throw_wrong_attrs(kAttrKindOf<T>, kind_);
    return *static_cast<const T*>(data_);
  }
  /// The struct, or its defaults where the call has none.
  template <AttrStruct T>
  const T& or_default() const {
    return empty() ? kDefaultAttrs<T> : as<T>();
  }

 private:
  template <class T>
  static constexpr T kDefaultAttrs{};

  const void* data_ = nullptr;
  AttrKind kind_ = AttrKind::None;
};

}  // namespace baregrad
