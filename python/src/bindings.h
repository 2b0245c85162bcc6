// The bindings: one file per folder of the engine. They convert arguments and results and compute
// nothing. The bind_* functions declare what Python sees, with its documentation.
#pragma once

#include <nanobind/nanobind.h>

namespace baregrad::python {

namespace nb = nanobind;

void bind_errors();
void bind_dtypes(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_tensor(nb::module_& m);
/// Methods of Tensor through which other libraries share its memory.
void bind_interop();
void bind_creation(nb::module_& m);
void bind_random(nb::module_& m);
void bind_tensor_iterator(nb::module_& m);
void bind_repr(nb::module_& m);
void bind_elementwise(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_optim(nb::module_& m);
void bind_data(nb::module_& m);
void bind_autograd(nb::module_& m);
void bind_autograd_function(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_io(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_search(nb::module_& m);
void bind_reductions(nb::module_& m);
void bind_movement(nb::module_& m);
void bind_products(nb::module_& m);
void bind_dtype_functions(nb::module_& m);
void bind_linalg(nb::module_& m);

/// Sets `__all__`, which `import *` brings in: all public names but those of submodules. The
/// package has modules of the same names, which an attribute would hide.
void set_public_names(nb::module_& m);

}  // namespace baregrad::python
