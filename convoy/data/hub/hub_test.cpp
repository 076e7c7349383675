// SPDX-License-Identifier: Apache-2.0
//
// Tests the parts of a download that need no server; tests/hub tests the others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/hub/blob_hash.h"
#include "convoy/data/hub/cache_entry.h"
#include "convoy/data/hub/file_choice.h"
#include "convoy/data/hub/hub_settings.h"
#include "convoy/data/hub/url.h"
#include "files/temporary_folder.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

std::string sha1_of(const std::string& text, size_t piece_bytes) {
  Sha1 hash;
  for (size_t at = 0; at < text.size(); at += piece_bytes)
    hash.update(text.substr(at, piece_bytes));
  return hash.hex();
}

// The examples of FIPS 180-4, and git's id of an empty file.
TEST(BlobHash, Sha1IsThatOfTheStandard) {
  EXPECT_EQ(sha1_of("", 1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_of("abc", 1), "a9993e364706816aba3e25717850c26c9cd0d89d");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const size_t piece : {1, 7, 55, 56, 64})
    EXPECT_EQ(sha1_of(two_blocks, piece), "84983e441c3bd26ebaae4aa1f95129e5e54670f1") << piece;
  EXPECT_EQ(sha1_of(std::string(1'000'000, 'a'), 777), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(BlobHash, KnowsItsKindByTheEtag) {
  const auto matches = [](const std::string& etag, const std::string& bytes) {
    BlobHash hash(etag, static_cast<int64_t>(bytes.size()));
    hash.update(bytes);
    return hash.matches();
  };
  EXPECT_TRUE(matches("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", ""));
  EXPECT_TRUE(matches("ce013625030ba8dba906f756967f9e9ca394464a", "hello\n"));
  EXPECT_FALSE(matches("ce013625030ba8dba906f756967f9e9ca394464a", "hallo\n"));
  const std::string sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_TRUE(matches(sha256, "abc"));
  EXPECT_FALSE(matches(sha256, "abd"));
  EXPECT_TRUE(matches("of-a-mirror", "whatever"));
}

TEST(Url, EscapesWhatAPathMayHold) {
  EXPECT_EQ(escaped_for_url("a b/c%d?#é"), "a%20b/c%25d%3F%23%C3%A9");
  EXPECT_EQ(escaped_for_url("refs/pr/1", ""), "refs%2Fpr%2F1");
}

TEST(Url, OriginsAreSchemeHostAndPort) {
  EXPECT_TRUE(same_origin("https://Hub.co/a", "https://hub.co:443/b?c"));
  EXPECT_TRUE(same_origin("http://h", "http://h:80/"));
  EXPECT_TRUE(same_origin("http://[::1]:8/a", "http://[::1]:8"));
  for (const char* other : {"http://hub.co/a", "https://hub.co:444/a", "https://hub.co.evil.org/a",
                            "https://hub.co@evil.org/a", "https://evil.org/https://hub.co/a"})
    EXPECT_FALSE(same_origin("https://hub.co/a", other)) << other;
  EXPECT_TRUE(same_origin("https://user:word@hub.co/a", "https://hub.co"));
}

TEST(Url, RedirectsAreSeenFromWhereTheyCame) {
  const std::string from = "https://hub.co/a/b?c=d";
  EXPECT_EQ(redirected_url(from, "https://cdn.co/x?y"), "https://cdn.co/x?y");
  EXPECT_EQ(redirected_url(from, "/x/y"), "https://hub.co/x/y");
  EXPECT_EQ(redirected_url(from, "//cdn.co/x"), "https://cdn.co/x");
  EXPECT_EQ(redirected_url(from, "x"), "https://hub.co/a/x");
  EXPECT_EQ(redirected_url("http://hub.co", "x"), "http://hub.co/x");
  for (const char* bad : {"file:///etc/passwd", "http://cdn.co/plain", "", "ftp://x/y"})
    EXPECT_THROW(redirected_url(from, bad), DataError) << bad;
  EXPECT_EQ(redirected_url("http://hub.co/a", "https://cdn.co/x"), "https://cdn.co/x");
}

TEST(FileChoice, TakesWhatConvoyReads) {
  const std::vector<std::string> files = {"config.json",
                                          "model-00001-of-00002.safetensors",
                                          "model.safetensors.index.json",
                                          "tokenizer.json",
                                          "tokenizer.model",
                                          "consolidated.safetensors",
                                          "pytorch_model.bin",
                                          "original/params.json",
                                          "onnx/model.onnx",
                                          "chat_template.jinja",
                                          "additional_chat_templates/tool_use.jinja",
                                          "README.md",
                                          "model.gguf",
                                          "picture.png",
                                          ".gitattributes"};
  const std::vector<std::string> wanted = {"config.json",
                                           "model-00001-of-00002.safetensors",
                                           "model.safetensors.index.json",
                                           "tokenizer.json",
                                           "tokenizer.model",
                                           "chat_template.jinja",
                                           "additional_chat_templates/tool_use.jinja",
                                           "README.md"};
  EXPECT_EQ(chosen_files(files, {}, is_model_file), wanted);
  EXPECT_EQ(
      chosen_files(files, {.include = {"*.json"}, .exclude = {"original/"}}, is_model_file),
      (std::vector<std::string>{"config.json", "model.safetensors.index.json", "tokenizer.json"}));
  EXPECT_EQ(chosen_files(files, {.exclude = {"model*"}}, is_model_file).size(), 6u);
  EXPECT_EQ(chosen_files(files, {.include = {"o*"}}, is_model_file).size(), 2u);
}

class Part : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const std::string bytes_ = "hello\n";
  const RemoteFile file_{
      .path = "x", .etag = "ce013625030ba8dba906f756967f9e9ca394464a", .size_bytes = 6};
};

TEST_F(Part, GoesOnWhereItWas) {
  {
    BlobPart part(folder_ / "p", file_);
    part.write(0, "hel");
  }
  BlobPart part(folder_ / "p", file_);
  EXPECT_EQ(part.size_bytes(), 3);
  part.write(3, "lo\n");
  EXPECT_TRUE(part.finish());
  EXPECT_EQ(read_file(folder_ / "p"), bytes_);
}

TEST_F(Part, BeginsAgainWhereTheServerDoes) {
  BlobPart part(folder_ / "p", file_);
  part.write(0, "other");
  part.write(0, "hel");
  part.write(3, "lo\n");
  EXPECT_TRUE(part.finish());
  EXPECT_EQ(read_file(folder_ / "p"), bytes_);
}

TEST_F(Part, WrongAndTooManyBytesAreNotTheFile) {
  BlobPart wrong(folder_ / "w", file_);
  wrong.write(0, "hallo\n");
  EXPECT_FALSE(wrong.finish());
  BlobPart longer(folder_ / "l", file_);
  EXPECT_THROW(longer.write(0, "hello\n!"), DataError);
  write_file_atomic(folder_ / "old", "longer than the file");
  EXPECT_EQ(BlobPart(folder_ / "old", file_).size_bytes(), 0);
}

TEST(Lock, OneAtATime) {
  const testing::TemporaryFolder folder;
  const FileLock held(folder / "l", [] { FAIL() << "nobody else has it"; });
  int waits = 0;
  EXPECT_THROW(FileLock(folder / "l",
                        [&] {
                          if (++waits == 3) throw StopRequest("enough");
                        }),
               StopRequest);
}

// The test may set environment variables, because ctest runs each program in a process of its own.
TEST(HubSettings, ComeFromTheEnvironmentOfHuggingfaceHub) {
  const testing::TemporaryFolder home;
  const std::map<std::string, std::string> variables = {{"HF_HOME", home.path().string()},
                                                        {"HF_ENDPOINT", "http://mirror//"},
                                                        {"HF_HUB_OFFLINE", "yes"},
                                                        {"HF_HUB_DOWNLOAD_TIMEOUT", "7"}};
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
                           "HF_HUB_DISABLE_IMPLICIT_TOKEN", "TRANSFORMERS_OFFLINE"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  write_file_atomic(home / "token", "hf_abc\n");
  const HubSettings settings = read_hub_settings();
  EXPECT_EQ(settings.endpoint, "http://mirror");
  EXPECT_EQ(settings.token, "hf_abc");
  EXPECT_EQ(settings.token_source, (home / "token").string());
  EXPECT_TRUE(settings.is_offline);
  EXPECT_EQ(settings.stall_seconds, 7);
  ::setenv("HF_HUB_DOWNLOAD_TIMEOUT", "soon", 1);
  EXPECT_THROW(read_hub_settings(), ConfigError);
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
}

}  // namespace
}  // namespace convoy::hub
