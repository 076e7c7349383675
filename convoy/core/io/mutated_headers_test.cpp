// SPDX-License-Identifier: Apache-2.0
//
// Damaged headers of safetensors files and damaged JSON are read or refused as a DataError, and
// every view lies inside its file.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "files/mutated_texts.h"
#include "files/temporary_folder.h"

namespace convoy::io {
namespace {

using convoy::testing::MutatedTexts;
using convoy::testing::TemporaryFolder;

// Reads every byte of every tensor. A view beyond the end of the file would give an error of the
// sanitizer or a SIGBUS.
size_t sum_of_bytes(const SafetensorsFile& file) {
  size_t sum = 0;
  for (const TensorView& view : file.tensors())
    for (const std::byte byte : view.bytes) sum += static_cast<size_t>(byte);
  return sum;
}

std::string with_length(const std::string& header) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> shift);
  return bytes + header;
}

TEST(MutatedHeaders, OfSafetensorsAreReadOrRefused) {
  const TemporaryFolder folder;
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
      R"("c":{"dtype":"I64","shape":[],"data_offsets":[32,40]}})";
  const std::string data(40, '\1');
  MutatedTexts headers({header}), files({with_length(header) + data});
  int read = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    const bool header_alone = round % 2 == 0;
    const auto path = folder / "x.safetensors";
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        << (header_alone ? with_length(headers.next()) + data : files.next());
    try {
      EXPECT_LE(sum_of_bytes(SafetensorsFile(path)), 255u * 200u);
      ++read;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 200);
}

TEST(MutatedHeaders, JsonIsReadOrRefusedAndWrittenAgain) {
  MutatedTexts texts(
      {R"({"model_type": "llama", "hidden_size": 64, "rope": {"factor": 8.0, "type": "x"}})",
       R"([1, -2.5e3, "a\u00e9\n", null, true, {"k": [[], {}]}])"});
  int read = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    try {
      const Json value = parse_json(texts.next(), "a text");
      EXPECT_EQ(parse_json(value.dump(), "its copy"), value);
      ++read;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace convoy::io
