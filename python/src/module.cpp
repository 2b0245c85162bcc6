// baregrad._core: the extension module with all bindings.
#include "bindings.h"
#include "casters.h"

namespace baregrad::python {

void set_public_names(nb::module_& m) {
  nb::list names;
  for (const auto [key, value] : nb::borrow<nb::dict>(PyModule_GetDict(m.ptr()))) {
    const bool hidden = utf8_of(key).starts_with('_');
    if (!hidden && !PyModule_Check(value.ptr())) names.append(key);
  }
  m.attr("__all__") = names;
}

}  // namespace baregrad::python

NB_MODULE(_core, m) {
  using namespace baregrad::python;
  // dtype objects live as long as the process by design, so nanobind must not report them as leaks.
  nb::set_leak_warnings(false);
  m.doc() = "The engine. Import baregrad instead.";
  bind_errors();
  bind_dtypes(m);
  bind_devices(m);
  bind_tensor(m);
  bind_interop();
  bind_random(m);
  bind_creation(m);
  bind_repr(m);
  bind_elementwise(m);
  bind_nn(m);
  bind_optim(m);
  bind_data(m);
  bind_autograd(m);
  bind_graph(m);
  bind_profile(m);
  bind_io(m);
  bind_runtime(m);
  bind_search(m);
  bind_reductions(m);
  bind_movement(m);
  bind_products(m);
  bind_dtype_functions(m);
  bind_linalg(m);
  set_public_names(m);
}
