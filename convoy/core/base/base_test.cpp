// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/terminal_size.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

TEST(JsonDepth, CountsBracketsOutsideOfTexts) {
  EXPECT_FALSE(nested_deeper("", 0));
  EXPECT_FALSE(nested_deeper("[{}]", 2));
  EXPECT_TRUE(nested_deeper("[{}]", 1));
  EXPECT_FALSE(nested_deeper(R"(["[[[\"[[[\\", {}, {}, []])", 2));
  EXPECT_TRUE(nested_deeper(R"(["[[[\"[[[\\", [[]]])", 2));
  EXPECT_TRUE(nested_deeper("]]]][[[", 2));
  EXPECT_TRUE(nested_deeper(std::string(kMostJsonLevels + 1, '[')));
  EXPECT_FALSE(nested_deeper("[\"\\", 1));
}

TEST(JsonDepth, FindsTheEndOfAnObject) {
  EXPECT_EQ(closing_brace(R"([{"a": {"}\"": 1}}, {}])", 1), 17U);
  EXPECT_EQ(closing_brace("{}", 0), 1U);
  EXPECT_EQ(closing_brace(R"({"a": "})", 0), std::string_view::npos);
}

TEST(JsonMember, OfAnotherTypeIsAsIfItWereNotThere) {
  const auto object = nlohmann::json::parse(R"({"n": 3, "x": 0.5, "w": "word", "b": true})");
  EXPECT_EQ(member_or(object, "n", int64_t{-1}), 3);
  EXPECT_EQ(member_or(object, "n", -1.0), 3.0);
  EXPECT_EQ(member_or(object, "x", int64_t{-1}), -1);
  EXPECT_EQ(member_or(object, "w", std::string("?")), "word");
  EXPECT_EQ(member_or(object, "n", std::string("?")), "?");
  EXPECT_EQ(member_or(object, "b", false), true);
  EXPECT_EQ(member_or(object, "w", false), false);
  EXPECT_EQ(member_or(object, "absent", 2.0), 2.0);
}

TEST(Milliseconds, AreBoundedByWhatADeadlineCanHold) {
  EXPECT_EQ(milliseconds_of(1.5).count(), 1500);
  EXPECT_EQ(milliseconds_of(-1.5).count(), -1500);
  EXPECT_EQ(milliseconds_of(1e300).count(), 1'000'000'000'000);
  EXPECT_EQ(milliseconds_of(-1e300).count(), -1'000'000'000'000);
  EXPECT_GT(std::chrono::steady_clock::now() + milliseconds_of(1e300),
            std::chrono::steady_clock::now());
}

TEST(Sha256, KnownAnswersOfFips180) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 pieces;
  for (int piece = 0; piece < 1000; ++piece) pieces.update(std::string(1000, 'a'));
  EXPECT_EQ(pieces.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xe3069283u);
}

TEST(Suggest, FindsTheNearWordOnly) {
  const std::vector<std::string> keys = {"batch_size", "learning_rate", "epochs"};
  EXPECT_EQ(nearest_word("batchsize", keys), "batch_size");
  EXPECT_EQ(nearest_word("batch-size", keys), "batch_size");
  EXPECT_EQ(nearest_word("epohcs", keys), "epochs");
  EXPECT_EQ(nearest_word("optimizer", keys), "");
}

TEST(Error, SentenceAndJsonLineCarryThePlace) {
  const DataError error("wanted a number", {.file = "a.jsonl", .line = 7, .hint = "quote it"});
  EXPECT_EQ(error.sentence(), "a.jsonl:7: wanted a number (quote it)");
  const auto json = nlohmann::json::parse(error.json_line());
  EXPECT_EQ(json["code"], 10);
  EXPECT_EQ(json["kind"], "data");
  EXPECT_TRUE(json["rank"].is_null());
  EXPECT_EQ(json["line"], 7);
  const IoError full("could not write a/b: No space left on device", {.file = "a/b"});
  EXPECT_EQ(full.sentence(), "could not write a/b: No space left on device") << "its file once";
}

TEST(TerminalSize, ComesFromTheEnvironmentWhereThereIsNoTerminal) {
  const int none = ::open("/dev/null", O_RDONLY);
  for (const auto& [text, columns] :
       {std::pair("132", 132), std::pair("", 0), std::pair("-5", 0), std::pair("wide", 0)}) {
    ::setenv("COLUMNS", text, 1);
    EXPECT_EQ(terminal_size(none).columns, columns) << text;
    EXPECT_EQ(terminal_size(none).rows, 0);
  }
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_size(none).columns, 0);
  ::close(none);
}

TEST(AtomicFile, LeavesNothingOfAWriterThatWasKilled) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-killed-{}", ::getpid());
  fs::create_directories(folder);
  const int nameless = ::open(folder.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(nameless);
  const pid_t writer = ::fork();
  if (writer == 0) {
    AtomicFile file(folder / "rows.jsonl");
    file.write(std::string_view("half"));
    ::raise(SIGKILL);
  }
  ::waitpid(writer, nullptr, 0);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

TEST(AtomicFile, WritesIntoADeviceOrAPipe) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-pipe-{}", ::getpid());
  fs::create_directories(folder);
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomic(pipe, "rows");
  std::array<char, 8> bytes{};
  EXPECT_EQ(::read(reader, bytes.data(), bytes.size()), 4);
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
  fs::remove_all(folder);
  write_file_atomic("/dev/null", "nothing");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-base-{}", ::getpid());
  const fs::path path = folder / "deep" / "file";
  {
    AtomicFile file(path);
    file.write(std::string_view("half"));
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(folder / "deep"));
  write_file_atomic(path, "whole");
  EXPECT_EQ(read_file(path), "whole");
  EXPECT_THROW(read_file(path, 2), DataError);
  EXPECT_THROW(read_file(folder), DataError);
  fs::remove_all(folder);
}

TEST(Loopback, OnlyWholeAddressesAreMeant) {
  for (const char* const host : {"127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE(is_loopback_address(host)) << host;
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  EXPECT_TRUE(is_loopback_host("localhost"));
  for (const char* const host : {"", "localhost", "0.0.0.0", "10.0.0.1", "::", "127.evil.example"})
    EXPECT_FALSE(is_loopback_address(host)) << host;
  EXPECT_FALSE(is_loopback_host("127.evil.example"));
}

}  // namespace
}  // namespace convoy
