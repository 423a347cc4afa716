// The library's calls over arrays of Python: every result is written into arrays that the caller
// made.
#pragma once

#include "glasshead/attend_plan.h"
#include "python/native/array.h"

namespace glasshead::python {

// The members of a plan by their names; those of its tiles as tiles_none, tiles_all, tiles_some.
using PlanFacts = nb::typed<nb::dict, nb::str, nb::object>;
PlanFacts told(const AttendPlan& plan);

void add_audit(nb::module_& module);
void add_calls(nb::module_& module);
void add_cache(nb::module_& module);
void add_trace(nb::module_& module);
void add_doctor(nb::module_& module);
void add_models(nb::module_& module);  // with the two below
void add_facts(nb::module_& module);
void add_tokenizer(nb::module_& module);

}  // namespace glasshead::python
