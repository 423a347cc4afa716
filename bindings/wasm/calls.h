// What a module answers: the calls by name. Which there are is the choice of the table that a
// module links: calls_learn.cc for what the page of lessons shows, calls_lesson.cc for all that it
// asks, calls_all.cc for everything.
//
//   trace      what the command's trace prints: "format" (json, text, md, latex, html, svg, csv),
//              "decimals", "mistake", "by_hand"
//   view       everything that the page shows, or what changed of it (view_delta.h)
//   why        the derivation of a row's weights: "query", "head"
//   origin     the cells that one cell came from and those it feeds: "tap", "head", "row", "column"
//   derive     one number made again from those it was made of: as origin, "decimals"
//   claims     what the case says of itself, checked
//   mistakes   those that can be made on this case
//   mistake    one of them beside the right run: "mistake" (its id), "decimals"
//   checks     whether the fused path gives what the case's trace shows
//   grade      a drill's answer: "drill" (its number), "ticked" (ids of the weights said to move)
//   copy       the case as a command or a program: "as" (command, numpy, pytorch, cpp), "mistake",
//              "by_hand"
//   shuffle    the tokens in the opposite order, and whether the outputs move along
//   step       a typed number and how far to move it, both as text: "text", "by"
//   sweep      "sweep": "d_k=1..64", "format": json or svg
//   worksheet  "seed", "level", "format"
//   sources    what was dropped or pasted, read, and a guess of which is which (given_tensors.h)
//   doctor     what the command's doctor prints (doctor_request.h): "format" (json, text, page)
//   probe      inputs that tell mistakes apart: "shape", "options", "seed"
//   sheet      a case made by hand (sheet.cc)
//
// From trace to step all take "case", "name" and "edit" (request.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wasm/request.h"
#include "wasm/session.h"

namespace glasshead::wasm {

using Call = std::optional<std::string> (*)(Request& request, Session& session);

struct NamedCall {
  std::string_view name;
  Call call;
};
std::span<const NamedCall> calls();

std::optional<std::string> trace(Request& request, Session& session);
std::optional<std::string> view(Request& request, Session& session);
std::optional<std::string> why(Request& request, Session& session);
std::optional<std::string> origin(Request& request, Session& session);
std::optional<std::string> derive(Request& request, Session& session);
std::optional<std::string> claims(Request& request, Session& session);
std::optional<std::string> mistake(Request& request, Session& session);
std::optional<std::string> checks(Request& request, Session& session);
std::optional<std::string> mistakes(Request& request, Session& session);
std::optional<std::string> grade(Request& request, Session& session);
std::optional<std::string> copy(Request& request, Session& session);
std::optional<std::string> shuffle(Request& request, Session& session);
std::optional<std::string> step(Request& request, Session& session);
std::optional<std::string> sweep(Request& request, Session& session);
std::optional<std::string> worksheet(Request& request, Session& session);
std::optional<std::string> sources(Request& request, Session& session);
std::optional<std::string> diagnose(Request& request, Session& session);
std::optional<std::string> probe(Request& request, Session& session);
std::optional<std::string> sheet(Request& request, Session& session);

}  // namespace glasshead::wasm
