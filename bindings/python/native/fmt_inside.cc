// The one function of fmt that the library calls, compiled into the module: where fmt is a shared
// library alone, as on Debian, a module that needed it would load nowhere else.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace glasshead::python {

using Vformat = std::string (*)(fmt::string_view, fmt::format_args);

// Its address is taken so that it is there to be linked with.
Vformat formatter() { return static_cast<Vformat>(&fmt::vformat); }

}  // namespace glasshead::python
