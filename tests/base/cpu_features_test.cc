#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "glasshead/cpu.h"

namespace glasshead {
namespace {

// The words after "name :" in the kernel's own description of the first processor.
std::string kernel_says(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, name.size(), name) == 0 && colon != std::string::npos)
      return line.substr(std::min(colon + 2, line.size()));
  }
  return "";
}

TEST(Cpu, names_each_feature_once_and_has_a_core) {
  const Cpu found = cpu();
  std::set<std::string> names;
  for (const CpuFeature& feature : found.features)
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
  EXPECT_GE(found.cores, 1);
  EXPECT_FALSE(found.architecture.empty());
}

#if defined(__x86_64__) && defined(__linux__)
TEST(Cpu, has_what_the_kernel_lists) {
  std::istringstream words(kernel_says("flags"));
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  const Cpu found = cpu();
  EXPECT_EQ(found.architecture, "x86-64");
  EXPECT_EQ(found.model, kernel_says("model name"));
  for (const CpuFeature& feature : found.features) {
    std::string kernels_name = feature.name;
    if (kernels_name == "sse4.2") kernels_name = "sse4_2";
    EXPECT_EQ(feature.is_supported, flags.count(kernels_name) != 0) << feature.name;
  }
}
#endif

}  // namespace
}  // namespace glasshead
