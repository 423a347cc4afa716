// The official ONNX package's own test data: folders test_*/ with model.onnx and test_data_set_*/
// input_*.pb, output_*.pb, as in onnx/backend/test/data/node of the wheel.
#pragma once

#include "conformance/onnx.h"

namespace glasshead::conformance {

// Whether the folder is such a test, or holds some.
bool is_onnx_package(const std::string& folder);

// Models of one node that this program knows are run; the others are skipped, the operator named.
FolderReport run_onnx_package(const std::string& folder, const Selection& selection);

}  // namespace glasshead::conformance
