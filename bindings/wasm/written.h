// An answer's JSON as a string, and what several calls write.
#pragma once

#include <string>
#include <string_view>

#include "wasm/request.h"
#include "wire/document_build.h"
#include "wire/json_writer.h"
#include "wire/print.h"

namespace glasshead::wasm {

// write(JsonWriter&)
template <class Write>
std::string written(Write write) {
  std::string bytes;
  {
    wire::JsonWriter json([&](std::string_view piece) { bytes += piece; });
    write(json);
  }
  return bytes;
}

void write_problems(wire::JsonWriter& json, const Problems& problems);

// The options of a document that the request asks for: "decimals".
wire::DocumentOptions document_options(Request& request);

}  // namespace glasshead::wasm
