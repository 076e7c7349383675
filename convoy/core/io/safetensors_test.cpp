// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "files/temporary_folder.h"
#include "load/slowdown.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

fs::path source_folder() { return std::getenv("CONVOY_SOURCE_DIR"); }

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string with_header_length(const std::string& header, const std::string& data = "") {
  std::string bytes(8, '\0');
  for (size_t index = 0; index < 8; ++index)
    bytes[index] = static_cast<char>(header.size() >> (8 * index));
  return bytes + header + data;
}

// Runs `action`, which must throw DataError within a second.
void expect_refused(const std::string& what, const auto& action) {
  SCOPED_TRACE(what);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(action(), DataError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::within(1));
}

TEST(Safetensors, ReadsAndRewritesTheReferenceFilesByteForByte) {
  TemporaryFolder folder;
  for (const std::string name : {"every_dtype", "names_and_shapes", "no_metadata"}) {
    const fs::path golden = source_folder() / "tests/golden/io" / (name + ".safetensors");
    const SafetensorsFile file(golden);
    std::vector<TensorSource> sources;
    for (const TensorView& view : file.tensors())
      sources.push_back(tensor_source(view.name, view.dtype, view.shape, view.bytes));
    std::reverse(sources.begin(), sources.end());
    const fs::path ours = folder / (name + ".safetensors");
    write_safetensors(ours, sources, file.metadata());
    EXPECT_EQ(read_file(ours), read_file(golden)) << name;
    if (const char* keep = std::getenv("CONVOY_KEEP_FILES"); keep != nullptr)
      fs::copy_file(ours, fs::path(keep) / ours.filename(), fs::copy_options::overwrite_existing);
  }
}

TEST(Safetensors, ViewsHoldTheReferenceValues) {
  const SafetensorsFile file(source_folder() / "tests/golden/io/every_dtype.safetensors");
  EXPECT_EQ(file.tensors().size(), 17u);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  const TensorView& view = file.require("tensor.12");
  EXPECT_EQ(view.dtype, Dtype::F32);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view.num_elements(), 6);
  std::array<float, 6> values{};
  ASSERT_EQ(view.bytes.size(), sizeof(values));
  std::memcpy(values.data(), view.bytes.data(), sizeof(values));
  EXPECT_EQ(values, (std::array<float, 6>{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_THROW(file.require("absent"), DataError);
}

TEST(Safetensors, StreamsInPiecesAndRefusesWrongProducers) {
  TemporaryFolder folder;
  const auto source = [](int64_t pieces) {
    return TensorSource{"x", Dtype::U8, {6}, [pieces](const ByteSink& sink) {
                          for (int64_t piece = 0; piece < pieces; ++piece)
                            sink(std::as_bytes(std::span("ab", 2)));
                        }};
  };
  write_safetensors(folder / "good.safetensors", {source(3)});
  EXPECT_EQ(read_file(folder / "good.safetensors")
                .substr(read_file(folder / "good.safetensors").size() - 6),
            "ababab");
  EXPECT_THROW(write_safetensors(folder / "short.safetensors", {source(2)}), StateError);
  EXPECT_THROW(write_safetensors(folder / "twice.safetensors", {source(3), source(3)}), StateError);
  EXPECT_THROW(write_safetensors(folder / "good.safetensors" / "x", {source(3)}), IoError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1)
      << "partial files are left";
}

TEST(BrokenFiles, EverySafetensorsFileIsRefused) {
  int num_files = 0;
  for (const auto& entry : fs::directory_iterator(source_folder() / "tests/broken/safetensors")) {
    expect_refused(entry.path().filename(), [&] { SafetensorsFile file(entry.path()); });
    ++num_files;
  }
  EXPECT_GE(num_files, 60);
}

TEST(BrokenFiles, EveryModelFolderIsRefused) {
  int num_folders = 0;
  for (const auto& entry : fs::directory_iterator(source_folder() / "tests/broken/models")) {
    expect_refused(entry.path().filename(),
                   [&] { ModelWeights weights(ModelFolder::open(entry.path())); });
    ++num_folders;
  }
  EXPECT_GE(num_folders, 40);
}

TEST(BrokenFiles, LargeHeadersAreRefusedOrReadInTime) {
  TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  std::string header = "{";
  for (int index = 0; index < 100'000; ++index)
    header += fmt::format(R"("t{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}},)", index,
                          index, index + 1);
  header.back() = '}';
  put(path, with_header_length(header, std::string(99'999, 'x')));
  expect_refused("100k tensors, one byte short", [&] { SafetensorsFile file(path); });
  put(path, with_header_length(header, std::string(100'000, 'x')));
  EXPECT_EQ(SafetensorsFile(path).tensors().size(), 100'000u);

  put(path, with_header_length(std::string(1'000'000, '{')));
  expect_refused("a million braces", [&] { SafetensorsFile file(path); });
  std::string deep = "{\"a\":{\"b\":";
  put(path, with_header_length(deep + std::string(1'000'000, '[') + "}"));
  expect_refused("a million brackets", [&] { SafetensorsFile file(path); });
  std::string dims = R"({"a":{"dtype":"U8","shape":[1)";
  for (int index = 0; index < 1'000'000; ++index) dims += ",1";
  put(path, with_header_length(dims + R"(],"data_offsets":[0,1]}})", "x"));
  expect_refused("a million dims", [&] { SafetensorsFile file(path); });
}

TEST(BrokenFiles, MoreThanAMillionTensorsAreRefused) {
  TemporaryFolder folder;
  std::string header = "{";
  for (int index = 0; index <= 1'000'000; ++index)
    header += fmt::format(R"("{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", index);
  header.back() = '}';
  put(folder / "x", with_header_length(header));
  EXPECT_THROW(SafetensorsFile(folder / "x"), DataError);
}

TEST(BrokenFiles, AFileCutWhileMappedIsAnErrorAndNoSignal) {
  TemporaryFolder folder;
  const std::string bytes(1 << 20, 'x');
  write_safetensors(folder / "x",
                    {tensor_source("a", Dtype::U8, {1 << 20}, std::as_bytes(std::span(bytes)))});
  const SafetensorsFile file(folder / "x");
  std::vector<std::byte> copied(1 << 20);
  copy_bytes(file.require("a"), copied);
  EXPECT_EQ(std::memcmp(copied.data(), bytes.data(), bytes.size()), 0);
  fs::resize_file(folder / "x", 4096);
  EXPECT_THROW(copy_bytes(file.require("a"), copied), DataError);
}

TEST(BrokenFiles, PointersOfGitLfsSayHowToFetchTheFile) {
  TemporaryFolder folder;
  put(folder / "model.safetensors",
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 988097824\n");
  try {
    SafetensorsFile file(folder / "model.safetensors");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("`git lfs pull`"), std::string::npos) << error.sentence();
  }
}

TEST(BrokenFiles, FoldersAndPipesAreNoFiles) {
  TemporaryFolder folder;
  EXPECT_THROW(SafetensorsFile(folder.path()), DataError);
  EXPECT_THROW(SafetensorsFile(folder / "absent"), DataError);
}

}  // namespace
}  // namespace convoy::io
