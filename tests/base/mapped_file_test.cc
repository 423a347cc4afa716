#include "base/mapped_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace glasshead::test {
namespace {

namespace fs = std::filesystem;

class Mapped : public testing::Test {
 protected:
  Mapped()
      : folder_(fs::temp_directory_path() / ("glasshead-mapped-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Mapped() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  static std::string refused(const std::string& path) {
    std::string what;
    EXPECT_FALSE(MappedFile::open(path, what));
    return what;
  }
  static std::string text(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }
  fs::path folder_;
};

TEST_F(Mapped, bytes_are_the_files_and_outlive_its_name) {
  put("a", "some bytes");
  std::string what;
  std::optional<MappedFile> file = MappedFile::open(path("a"), what);
  ASSERT_TRUE(file) << what;
  EXPECT_EQ(text(*file), "some bytes");
  fs::remove(path("a"));
  EXPECT_EQ(text(*file), "some bytes");
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(text(moved), "some bytes");
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(Mapped, an_assigned_mapping_takes_the_place_of_another) {
  put("a", "first");
  put("b", "second");
  std::string what;
  std::optional<MappedFile> a = MappedFile::open(path("a"), what);
  std::optional<MappedFile> b = MappedFile::open(path("b"), what);
  ASSERT_TRUE(a && b) << what;
  *a = std::move(*b);
  EXPECT_EQ(text(*a), "second");
}

TEST_F(Mapped, an_empty_file_has_no_bytes) {
  put("empty", "");
  std::string what;
  const std::optional<MappedFile> file = MappedFile::open(path("empty"), what);
  ASSERT_TRUE(file) << what;
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(Mapped, what_cannot_be_mapped_is_refused_at_once) {
  EXPECT_EQ(refused(path("absent")), "no such file");
  EXPECT_EQ(refused(folder_.string()), "is a directory; a file is needed");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);  // whose opening would wait for a writer
  EXPECT_EQ(refused(path("pipe")), "is not a regular file, which is needed");
  EXPECT_EQ(refused("/dev/null"), "is not a regular file, which is needed");
  put("a", "x");
  EXPECT_EQ(refused(path("a") + std::string(1, '\0') + ".gguf"),
            "no file's name holds a zero byte");
}

}  // namespace
}  // namespace glasshead::test
