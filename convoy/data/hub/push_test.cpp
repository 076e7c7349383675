// SPDX-License-Identifier: Apache-2.0
//
// Tests the parts of an upload that need no server; tests/hub tests the others.
#include "convoy/data/hub/push.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/hub/commit_body.h"
#include "convoy/data/hub/url.h"
#include "files/temporary_folder.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

// The examples of RFC 4648.
TEST(CommitBody, Base64IsThatOfTheStandard) {
  const std::vector<std::pair<const char*, const char*>> examples = {{"", ""},
                                                                     {"f", "Zg=="},
                                                                     {"fo", "Zm8="},
                                                                     {"foo", "Zm9v"},
                                                                     {"foob", "Zm9vYg=="},
                                                                     {"fooba", "Zm9vYmE="},
                                                                     {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64("\xff\xfe\xfd\xfb"), "//79+w==");
}

std::string whole(CommitBody& body, size_t piece_bytes) {
  std::string text;
  std::string piece(piece_bytes, '\0');
  while (static_cast<int64_t>(text.size()) < body.size_bytes())
    text.append(piece, 0, body.read(static_cast<int64_t>(text.size()), piece.data(), piece.size()));
  return text;
}

TEST(CommitBody, IsALineForEachFileHoweverItIsRead) {
  const testing::TemporaryFolder folder;
  write_file_atomic(folder / "b", std::string(5000, '\xe4'));
  const PushFile text = file_of_text("dir/a \"b\".md", "words\n");
  const PushFile file{.path = "b", .source = folder / "b", .size_bytes = 5000};
  const PushFile large{.path = "m.safetensors", .source = folder / "m", .size_bytes = 1LL << 40};
  CommitBody body("First \"words\"", "");
  body.add_file(text);
  body.add_file(file);
  body.add_large_file(large, std::string(64, 'a'));
  const std::string once = whole(body, 1 << 20);
  for (const size_t piece_bytes : {1, 7, 4096}) EXPECT_EQ(whole(body, piece_bytes), once);
  EXPECT_EQ(static_cast<int64_t>(once.size()), body.size_bytes());
  std::istringstream lines(once);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0]["value"]["summary"], "First \"words\"");
  EXPECT_EQ(found[1]["value"]["path"], "dir/a \"b\".md");
  EXPECT_EQ(found[1]["value"]["content"], "d29yZHMK");
  EXPECT_EQ(found[2]["value"]["content"], base64(std::string(5000, '\xe4')));
  EXPECT_EQ(found[3]["value"]["size"], 1LL << 40);
}

TEST(CommitBody, AFileThatBecameShorterIsAnError) {
  const testing::TemporaryFolder folder;
  write_file_atomic(folder / "b", "12345");
  const PushFile file{.path = "b", .source = folder / "b", .size_bytes = 6};
  CommitBody body("x", "");
  body.add_file(file);
  EXPECT_THROW(whole(body, 100), DataError);
}

TEST(PushFiles, HaveTheHubsNames) {
  const PushFile file = file_of_text("x", "hello\n");
  EXPECT_EQ(git_id_of(file), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(sha256_of(file), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  const testing::TemporaryFolder folder;
  write_file_atomic(folder / "y", "hello\n");
  EXPECT_EQ(sha256_of({.path = "y", .source = folder / "y", .size_bytes = 6}), sha256_of(file));
}

TEST(PushFiles, AreHashedInPiecesThatAreCounted) {
  const testing::TemporaryFolder folder;
  constexpr int64_t kBytes = (int64_t{1} << 21) + 5;
  write_file_atomic(folder / "b", std::string(kBytes, 'b'));
  const PushFile file{.path = "b", .source = folder / "b", .size_bytes = kBytes};
  for (std::string (*const id_of)(const PushFile&, const HashedBytes&) : {sha256_of, git_id_of}) {
    int64_t counted = 0;
    int64_t pieces = 0;
    const auto count = [&](int64_t bytes) {
      counted += bytes;
      ++pieces;
    };
    id_of(file, count);
    EXPECT_EQ(counted, kBytes);
    EXPECT_EQ(pieces, 3);
    EXPECT_THROW(id_of(file, [](int64_t) { throw StopRequest("stopped on request"); }),
                 StopRequest);
  }
}

TEST(PushFiles, AreThoseOfTheFolderByName) {
  const testing::TemporaryFolder folder;
  for (const char* path : {"b", "a/c", ".gitattributes", ".git/config", "a/.cache/x", "a/b.tmp"})
    write_file_atomic(folder / path, "1");
  fs::create_symlink(folder / "b", folder / "link");
  std::vector<std::string> found;
  for (const PushFile& file : files_to_push(folder.path(), {.exclude = {"*.tmp"}}))
    found.push_back(file.path);
  EXPECT_EQ(found, (std::vector<std::string>{".gitattributes", "a/c", "b", "link"}));
  EXPECT_THROW(files_to_push(folder / "absent", {}), DataError);
}

TEST(Url, SecretsOfAnAddressAreNotShown) {
  EXPECT_EQ(shown_url("https://s3.co/a/b?X-Amz-Signature=c"), "https://s3.co/a/b");
  EXPECT_EQ(shown_url("https://user:word@hub.co/a@b"), "https://hub.co/a@b");
  EXPECT_EQ(shown_url("https://user:word@hub.co"), "https://hub.co");
  EXPECT_EQ(shown_url("http://hub.co/a"), "http://hub.co/a");
}

}  // namespace
}  // namespace convoy::hub
