// The library's calls over arrays of Python: every result is written into arrays that the caller
// made.
#pragma once

#include "python/native/array.h"

namespace glasshead::python {

void add_calls(nb::module_& module);
void add_cache(nb::module_& module);
void add_trace(nb::module_& module);
void add_doctor(nb::module_& module);

}  // namespace glasshead::python
