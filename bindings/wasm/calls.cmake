# glasshead_calls: what a page asks for (calls.h), but for the table of calls that a program chooses. Natively for the
# tests and the fuzzer, the same sources as in the modules.
if(NOT TARGET glasshead_calls)
  set(from ${CMAKE_CURRENT_LIST_DIR})
  add_library(glasshead_calls STATIC ${from}/call.cc ${from}/checks.cc ${from}/claims.cc ${from}/copy.cc ${from}/forms.cc ${from}/grade.cc ${from}/mistake.cc
    ${from}/request.cc ${from}/session.cc ${from}/shuffle.cc ${from}/step.cc ${from}/sweep.cc ${from}/trace.cc ${from}/view.cc
    ${from}/view_by_hand.cc ${from}/view_case.cc ${from}/view_delta.cc ${from}/why.cc ${from}/worksheet.cc ${from}/written.cc)
  target_include_directories(glasshead_calls PUBLIC ${PROJECT_SOURCE_DIR}/bindings)
  target_sources(glasshead_calls PRIVATE ${from}/base64.cc ${from}/believed.cc ${from}/doctor.cc ${from}/doctor_request.cc
    ${from}/given_tensors.cc ${from}/roles.cc ${from}/sheet.cc ${from}/sheet_case.cc)
  target_link_libraries(glasshead_calls PUBLIC glasshead_doctor glasshead_formats)
endif()
