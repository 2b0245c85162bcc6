// What an op's result looks like, before anything is computed or allocated: shapes, dtypes, devices
// and views.
#pragma once

#include <string>
#include <vector>

#include "baregrad/layout.h"
#include "baregrad/tensor.h"
#include "ops/op_call.h"

namespace baregrad {

struct OutputSpec {
  Dims shape;
  DType dtype = DType::Float32;
};

/// The results of any call, without memory. Throws what the call itself would throw for its shapes,
/// dtypes and devices.
std::vector<OutputSpec> infer(const OpCall& call);
/// The same for an op with one result, which is no view; `compute` is what the op computes in.
struct SingleResult {
  OutputSpec out;
  DType compute;
};
SingleResult infer_single(const OpCall& call);

/// The device of the inputs, on which the call runs. 0-d tensors of the CPU may join those of
/// another device. ValueError where two devices are mixed.
Device infer_device(const OpCall& call);

struct ElementwiseTypes {
  DType compute;  ///< the inputs' common dtype, before half precision is widened
  DType result;
};

/// Checks the op's dtype rule and promotes. Throws DTypeError.
ElementwiseTypes infer_elementwise_types(const OpCall& call);
/// NumPy's broadcast of all inputs. Throws ShapeError naming the axis.
Dims infer_broadcast(const OpCall& call);
/// Broadcast of two shapes; false when they do not fit.
bool broadcast_shapes(const Dims& a, const Dims& b, Dims& out) noexcept;

struct ReduceTypes {
  DType input;  ///< what the input is taken as
  DType result;
};
ReduceTypes infer_reduce_types(const OpCall& call);
/// The input's shape with the axes of the mask set to 1, or removed.
Dims infer_reduced_shape(const Dims& shape, AxisMask axes, bool keepdims);

/// Shape of a matrix product. Throws ShapeError naming the axes that do not fit.
Dims infer_product(const OpCall& call);

/// Layout of a view op's result. Throws.
Layout infer_view(const OpCall& call);

/// Outputs of an irregular op, by its own function, which stands beside its public function. It
/// checks all that the kernel relies on, but for values.
std::vector<OutputSpec> infer_irregular(const OpCall& call);
#define BG_IRREGULAR(name, attrs, infer, results, doc) \
  std::vector<OutputSpec> infer_##infer(const OpCall& call);
#include "ops/ops.def"

/// Axes to a mask; IndexError for one out of range, ValueError for one given twice.
AxisMask axes_mask(const class Axes& axes, int ndim, const char* who);

/// "float32[2,3] and int64[]": all inputs, for messages.
std::string describe_inputs(const OpCall& call);

}  // namespace baregrad
