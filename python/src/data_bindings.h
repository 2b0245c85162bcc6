// Parts of baregrad.data that have binding files of their own.
#pragma once

#include "bindings.h"

namespace baregrad::python {

void bind_data_files(nb::module_& data);

}  // namespace baregrad::python
