// The bindings of baregrad.nn: one function per file.
#pragma once

#include <nanobind/nanobind.h>

namespace baregrad::python {

namespace nb = nanobind;

void bind_nn_layers(nb::module_& nn);
void bind_nn_activations(nb::module_& nn);
void bind_nn_conv(nb::module_& nn);
void bind_nn_norm(nb::module_& nn);
void bind_nn_recurrent(nb::module_& nn);
void bind_nn_attention(nb::module_& nn);
void bind_nn_losses(nb::module_& nn);
void bind_nn_functional(nb::module_& functional);
void bind_nn_init(nb::module_& init);

}  // namespace baregrad::python
