// What an op's result looks like, before anything is computed: shapes, dtypes, views.
#pragma once

#include <string>
#include <vector>

#include "baregrad/layout.h"
#include "baregrad/tensor.h"
#include "ops/dispatch.h"

namespace baregrad {

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
Dims infer_reduced_shape(const Dims& shape, std::uint32_t axes, bool keepdims);

/// Shape of a matrix product. Throws ShapeError naming the axes that do not fit.
Dims infer_product(const OpCall& call);

/// Layout of a view op's result. Throws.
Layout infer_view(const OpCall& call);

struct OutputSpec {
  Dims shape;
  DType dtype;
};
/// Outputs of an irregular op.
std::vector<OutputSpec> infer_irregular(const OpCall& call);

/// Axes to a bit mask; IndexError for one out of range, ValueError for one given twice.
std::uint32_t axes_mask(const class Axes& axes, int ndim, const char* who);

/// "float32[2,3] and int64[]": all inputs, for messages.
std::string describe_inputs(const OpCall& call);

}  // namespace baregrad
