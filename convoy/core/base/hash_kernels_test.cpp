// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/hash_kernels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/joined_crc.h"

namespace convoy {
namespace {

std::string counting(size_t num_bytes) {
  std::string bytes;
  for (size_t byte = 0; byte < num_bytes; ++byte) bytes += static_cast<char>(byte * 131 + byte / 7);
  return bytes;
}

std::string sha256_by(const HashKernels& kernels, std::string_view bytes, size_t piece) {
  Sha256 hash(kernels);
  for (size_t at = 0; at < bytes.size(); at += piece) hash.update(bytes.substr(at, piece));
  return hash.hex();
}

uint32_t crc_by(const HashKernels& kernels, std::string_view bytes) {
  return ~kernels.crc32c(bytes, ~0u);
}

// The flags that Linux reports for the processor; empty on other systems.
std::string processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return line + " ";
  return "";
}

class EachHash : public ::testing::TestWithParam<const HashKernels*> {};

// The example messages of NIST's FIPS 180-4, among them a million letters `a`.
TEST_P(EachHash, HasTheKnownAnswersOfSha256) {
  EXPECT_EQ(sha256_by(*GetParam(), "", 1),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_by(*GetParam(), "abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_by(*GetParam(), "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_by(*GetParam(),
                      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnop"
                      "jklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                      112),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256_by(*GetParam(), std::string(1'000'000, 'a'), 1'000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The test vectors of RFC 3720, section B.4.
TEST_P(EachHash, HasTheKnownAnswersOfCrc32c) {
  std::string up, down;
  for (int byte = 0; byte < 32; ++byte) {
    up += static_cast<char>(byte);
    down += static_cast<char>(31 - byte);
  }
  EXPECT_EQ(crc_by(*GetParam(), ""), 0u);
  EXPECT_EQ(crc_by(*GetParam(), "123456789"), 0xe3069283u);
  EXPECT_EQ(crc_by(*GetParam(), std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc_by(*GetParam(), std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc_by(*GetParam(), up), 0x46dd794eu);
  EXPECT_EQ(crc_by(*GetParam(), down), 0x113fdb5cu);
}

TEST_P(EachHash, AgreesWithThePlainOneAtEveryLengthAndPlace) {
  const std::string bytes = counting(301 + 8);
  for (size_t length = 0; length <= 300; ++length) {
    const std::string_view text = std::string_view(bytes).substr(length % 9, length);
    const std::string wanted = sha256_by(portable_hash_kernels(), text, 1);
    for (const size_t piece : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{300}})
      ASSERT_EQ(sha256_by(*GetParam(), text, piece), wanted) << length << " in pieces of " << piece;
    ASSERT_EQ(crc_by(*GetParam(), text), crc_by(portable_hash_kernels(), text)) << length;
    ASSERT_EQ(crc32c(text.substr(length / 3), crc_by(*GetParam(), text.substr(0, length / 3))),
              crc_by(portable_hash_kernels(), text))
        << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Hashes, EachHash,
                         ::testing::Values(&portable_hash_kernels(), &best_hash_kernels()),
                         [](const auto& kernels) {
                           return kernels.index == 0 ? "Portable" : "OfTheProcessor";
                         });

TEST(JoinedCrc, IsThatOfBothTextsTogether) {
  const std::string bytes = counting(70'000);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4095}, size_t{69'999}, bytes.size()}) {
    const std::string_view text = bytes;
    EXPECT_EQ(
        joined_crc32c(crc32c(text.substr(0, cut)), crc32c(text.substr(cut)), text.size() - cut),
        crc32c(text))
        << cut;
  }
}

TEST(HashChoice, IsWhatTheProcessorHas) {
  const std::string flags = processor_flags();
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo here";
  const bool has_sha = flags.find(" sha_ni ") != std::string::npos;
  const bool has_crc = flags.find(" sse4_2 ") != std::string::npos;
  EXPECT_EQ(best_hash_kernels().sha256 != portable_hash_kernels().sha256, has_sha);
  EXPECT_EQ(best_hash_kernels().crc32c != portable_hash_kernels().crc32c, has_crc);
  EXPECT_EQ(best_hash_kernels().name, has_sha || has_crc ? "instructions" : "portable");
}

}  // namespace
}  // namespace convoy
