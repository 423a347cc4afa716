// glasshead-conformance: runs folders of golden data and says what is right.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "conformance/adversarial.h"
#include "conformance/onnx.h"
#include "conformance/onnx_package.h"
#include "conformance/seeds.h"
#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

FolderReport run_folder(const std::string& folder, const Selection& selection) {
  if (is_onnx_package(folder)) return run_onnx_package(folder, selection);
  const Golden golden(folder);
  const std::string format = golden.format();
  if (format.starts_with("golden/adversarial ")) return run_adversarial(golden, selection);
  if (format.starts_with("golden/seeds ")) return run_seeds(golden, selection);
  if (format.starts_with("golden/onnx_attention ")) {
    return run_onnx_attention_folder(golden, selection);
  }
  if (format.starts_with("golden/onnx_other ")) return run_onnx_other_folder(golden, selection);
  throw FormatError("glasshead-conformance",
                    {{folder + "/index.json", "format \"" + format + "\" is not known"}});
}

struct Arguments {
  std::vector<std::string> folders;
  std::string path = "all", isa;
  bool is_json = false;
  Selection selection;
};

int run_folders(Arguments arguments) {
  arguments.selection.engines = engines_of(arguments.path, arguments.isa);
  nlohmann::json all = nlohmann::json::array();
  bool is_all_right = true;
  std::size_t found = 0;
  for (const std::string& folder : arguments.folders) {
    const FolderReport report = run_folder(folder, arguments.selection);
    found += report.cases.size();
    is_all_right = is_all_right && report.count(Outcome::failed) == 0;
    if (arguments.selection.is_list) {
      for (const CaseResult& c : report.cases) std::printf("%s\n", c.name.c_str());
    } else if (arguments.is_json) {
      all.push_back(to_json(report));
    } else if (arguments.selection.only.empty() || !report.cases.empty()) {
      std::fputs(text(report).c_str(), stdout);
      std::fflush(stdout);
    }
  }
  if (!arguments.selection.only.empty() && found == 0) {
    std::fprintf(stderr, "--only %s: no folder has a case of this name (--list prints them)\n",
                 arguments.selection.only.c_str());
    return 2;
  }
  if (arguments.is_json && !arguments.selection.is_list) {
    const nlohmann::json out{{"schema", "glasshead.conformance/1"}, {"folders", all}};
    std::printf("%s\n", out.dump(1).c_str());
  }
  return is_all_right ? 0 : 1;
}

}  // namespace
}  // namespace glasshead::conformance

int main(int argc, char** argv) {
  glasshead::conformance::Arguments arguments;
  CLI::App app{
      "Runs folders of golden data: seeds, adversarial, onnx_attention, onnx_other (told apart by "
      "the\n"
      "format in their index.json), and the test data of the official ONNX package\n"
      "(.../onnx/backend/test/data/node). Prints the failed cases and one line per folder.\n"
      "Exit code 0: all passed; 1: a case failed; 2: bad usage or a folder that can't be read.",
      "glasshead-conformance"};
  app.add_option("DIR", arguments.folders, "folders to run")->required()->type_name("");
  app.add_option("--path", arguments.path,
                 "which path computes: the readable one, the fused one with every kernel set "
                 "that this processor has, or all of them, the default")
      ->type_name("transparent|fused|all")
      ->check(CLI::IsMember({"transparent", "fused", "all"}).description(""));
  app.add_option("--isa", arguments.isa, "run the fused path with this kernel set alone")
      ->type_name("NAME");
  app.add_flag("--json", arguments.is_json, "every case and every failure, as JSON");
  app.add_option("--only", arguments.selection.only, "run only the case of this name")
      ->type_name("NAME");
  app.add_flag("--list", arguments.selection.is_list, "print the names of the cases, run nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return glasshead::conformance::run_folders(std::move(arguments));
  } catch (const glasshead::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const nlohmann::json::exception& error) {
    std::fprintf(stderr, "index.json: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return 3;
  }
}
