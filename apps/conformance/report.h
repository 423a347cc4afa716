// What a run of one folder found, and how it is told.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "conformance/compare.h"
#include "conformance/engine.h"
#include "glasshead/error.h"

namespace glasshead::conformance {

enum class Outcome { passed, failed, skipped };

struct CaseResult {
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string reason;             // of a skipped case
  std::vector<Failure> failures;  // of a failed one

  void add(std::optional<Failure> failure, const std::string& run);
  void add_refusal(const Error& error);  // the library refused what must pass
};

CaseResult named(std::string name);  // passed until a failure is added

CaseResult skipped(std::string name, std::string reason);

// What is to be run.
struct Selection {
  std::string only;      // a case's name, or empty: all
  bool is_list = false;  // names only, nothing is run
  std::vector<Engine> engines;
  bool wants(const std::string& name) const { return only.empty() || only == name; }
  // Whether the steps run too: they are the readable path.
  bool has_steps() const {
    for (const Engine& engine : engines)
      if (!engine.is_fused()) return true;
    return false;
  }
};

struct FolderReport {
  std::string folder;
  std::string format;  // of its index, "onnx package"
  std::vector<CaseResult> cases;

  index_t count(Outcome outcome) const;
  std::map<std::string, index_t> skipped_by_reason() const;
};

// A line per failed case, a line per reason for skipping, and "N passed, N failed".
std::string text(const FolderReport& report);
nlohmann::json to_json(const FolderReport& report);

}  // namespace glasshead::conformance
