#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "formats/bytes.h"

namespace glasshead::test {
namespace {

namespace fs = std::filesystem;
class TensorFile : public testing::Test {
 protected:
  TensorFile() : folder_(fs::temp_directory_path() / ("glasshead-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~TensorFile() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  fs::path folder_;
};

template <class E, class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing, or another type, was thrown";
  return "";
}

const FileTensor kMatrix = tensor_of<float>({2, 2}, {1, 2, 3, 4});

TEST_F(TensorFile, the_ending_decides_the_format) {
  write_tensor(path("a.npy"), kMatrix);
  write_tensor(path("a.safetensors"), kMatrix, "weights");
  EXPECT_EQ(read_tensor(path("a.npy")), kMatrix);
  EXPECT_EQ(read_tensor(path("a.safetensors")), kMatrix);
  EXPECT_EQ(read_safetensors(path("a.safetensors"))[0].first, "weights");
  EXPECT_TRUE(says(message<FormatError>([&] { read_tensor(path("a.txt")); }),
                   "must end in .npy or .safetensors"));
  EXPECT_TRUE(says(message<FormatError>([&] { write_tensor(path("a.bin"), kMatrix); }),
                   "must end in .npy or .safetensors"));
}

TEST_F(TensorFile, a_tensor_is_chosen_by_its_name_after_a_colon) {
  const FileTensor other = tensor_of<double>({1}, {9});
  write_safetensors(path("two.safetensors"), {{"q", kMatrix}, {"a:b", other}});
  EXPECT_EQ(read_tensor(path("two.safetensors:q")), kMatrix);
  EXPECT_EQ(read_tensor(path("two.safetensors:a:b")), other);
  EXPECT_TRUE(says(message<FormatError>([&] { read_tensor(path("two.safetensors:k")); }),
                   "holds no tensor 'k'; it holds 'q', 'a:b'"));
  EXPECT_TRUE(says(message<FormatError>([&] { read_tensor(path("two.safetensors")); }),
                   "holds 2 tensors ('q', 'a:b'); name one"));
}

TEST_F(TensorFile, an_error_names_the_file_and_what_was_wrong_in_it) {
  put("bad.npy", "not one");
  EXPECT_TRUE(says(message<FormatError>([&] { read_npy(path("bad.npy")); }),
                   path("bad.npy") + ": magic: found 'not on'"));
  EXPECT_TRUE(says(message<IoError>([&] { read_npy(path("none.npy")); }),
                   path("none.npy") + ": no such file"));
  EXPECT_TRUE(says(message<IoError>([&] { read_bytes(path("")); }), "is a directory"));
}

TEST_F(TensorFile, what_comes_in_pieces_is_read_to_its_end) {
  // Less than is read at once (64 KiB), as much, a multiple, and more.
  for (const std::size_t size : std::vector<std::size_t>{0, 1000, 65536, 131072, 131073}) {
    std::string text(size, ' ');
    for (std::size_t n = 0; n < size; ++n) text[n] = static_cast<char>(n * 31 % 251);
    const std::string pipe = path("pipe" + std::to_string(size));
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::jthread writer([&] {
      std::ofstream to(pipe, std::ios::binary);
      for (std::size_t n = 0; n < size; n += 1000) to << text.substr(n, 1000) << std::flush;
    });
    const std::vector<std::byte> bytes = read_bytes(pipe);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text);
  }
}

TEST_F(TensorFile, a_file_beyond_the_limit_is_refused_before_it_is_read) {
  put("huge.npy", "x");
  std::error_code error;  // a sparse file: no space is taken
  fs::resize_file(path("huge.npy"), static_cast<std::uintmax_t>(kLargestFile) + 1, error);
  if (error) GTEST_SKIP() << "no sparse files here";
  EXPECT_TRUE(says(message<IoError>([&] { read_npy(path("huge.npy")); }), "is larger than 64 GiB"));
}

TEST_F(TensorFile, a_failed_write_leaves_nothing_behind) {
  EXPECT_THROW(write_npy(path("no/such/folder.npy"), kMatrix), IoError);
  EXPECT_THROW(write_npy(path("x.npy"), tensor_of<bf16>({1}, {{0}})), FormatError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TensorFile, a_write_replaces_the_file_whole_and_leaves_no_temporary) {
  put("a.npy", std::string(10000, 'x'));
  write_npy(path("a.npy"), kMatrix);
  EXPECT_EQ(read_npy(path("a.npy")), kMatrix);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(TensorFile, a_link_is_followed_and_a_pipe_is_written_to) {
  put("real.npy", "old");
  fs::create_symlink("real.npy", path("link.npy"));
  write_npy(path("link.npy"), kMatrix);
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_EQ(read_npy(path("real.npy")), kMatrix);
  write_bytes("/dev/null", bytes_of("gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(FileTensor, a_view_gains_leading_axes_of_size_one) {
  const ConstTensor<4> view = kMatrix.view<4>("q");
  EXPECT_EQ(view.shape, (ConstTensor<4>::Shape{1, 1, 2, 2}));
  EXPECT_EQ(view.load(0, 0, 1, 0), 3);
  EXPECT_EQ(kMatrix.load(3), 4);
  EXPECT_EQ(kMatrix.size(), 4);
  EXPECT_TRUE(says(message<ShapeError>([&] { kMatrix.view<1>("lse"); }),
                   "lse: has rank 2 (shape [2, 2]); rank 1 or less is needed"));
}

}  // namespace
}  // namespace glasshead::test
