// SPDX-License-Identifier: Apache-2.0
//
// Tests the checks between the port and the coordinator: token, handshake, frames and endpoints.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/rendezvous/frame.h"
#include "convoy/launch/rendezvous/handshake.h"
#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::rendezvous {
namespace {

constexpr const char* kPortSecret = "a secret of sixteen or more";

// A token file, removed by the destructor.
class TokenFile {
 public:
  TokenFile(const std::string& text, mode_t mode) {
    path_ = (std::filesystem::temp_directory_path() / "convoy-token-XXXXXX").string();
    const int file = ::mkstemp(path_.data());
    [[maybe_unused]] const ssize_t written = ::write(file, text.data(), text.size());
    ::fchmod(file, mode);
    ::close(file);
  }
  ~TokenFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(JobToken, AFileOfItsOwnerIsRead) {
  const TokenFile file(std::string(kPortSecret) + "\n", 0600);
  EXPECT_EQ(JobToken::from_file(file.path()).key(), JobToken::from_secret(kPortSecret).key());
}

TEST(JobToken, AFileThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0666u}) {
    const TokenFile file(kPortSecret, mode);
    EXPECT_THROW(JobToken::from_file(file.path()), ConfigError) << std::oct << mode;
  }
}

TEST(JobToken, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const TokenFile file(kPortSecret, 0600);
  ASSERT_EQ(::chown(file.path().c_str(), 12345, 12345), 0);
  EXPECT_THROW(JobToken::from_file(file.path()), ConfigError);
}

TEST(JobToken, ShortSecretsFoldersAndMissingFilesAreRefused) {
  EXPECT_THROW(JobToken::from_secret("short"), ConfigError);
  EXPECT_THROW(JobToken::from_file("/"), ConfigError);
  EXPECT_THROW(JobToken::from_file("/no/such/file"), ConfigError);
}

TEST(JobToken, AWorkerGetsTheSameKeyAndNoWarning) {
  const JobToken token = JobToken::from_run_id("run");
  EXPECT_TRUE(token.guessable());
  const JobToken worker = JobToken::from_secret(token.for_worker());
  EXPECT_EQ(worker.key(), token.key());
  EXPECT_FALSE(worker.guessable());
}

TEST(JobToken, RunIdsGiveDifferentKeys) {
  EXPECT_NE(JobToken::from_run_id("a").key(), JobToken::from_run_id("b").key());
  EXPECT_NE(JobToken::new_secret(), JobToken::new_secret());
}

// ---- handshake

ServerHandshake::Result give(ServerHandshake& server, std::string_view bytes,
                             const JobToken& token) {
  EXPECT_LE(bytes.size(), server.space_bytes());
  std::copy(bytes.begin(), bytes.end(), server.space());
  return server.received(bytes.size(), token);
}

TEST(Handshake, BothSidesProveTheToken) {
  const JobToken token = JobToken::from_secret(kPortSecret);
  ServerHandshake server;
  ClientHandshake client;
  std::string bytes = server.greeting();
  ASSERT_EQ(client.received(bytes, token), ClientHandshake::Result::SendAnswer);
  ASSERT_EQ(give(server, client.answer(token), token), ServerHandshake::Result::Proven);
  bytes += server.reply(token) + "more";
  EXPECT_EQ(client.received(bytes, token), ClientHandshake::Result::Proven);
  EXPECT_EQ(bytes, "more");
}

TEST(Handshake, BytesMayComeOneByOne) {
  const JobToken token = JobToken::from_secret(kPortSecret);
  ServerHandshake server;
  ClientHandshake client;
  std::string bytes = server.greeting();
  client.received(bytes, token);
  const std::string answer = client.answer(token);
  for (size_t at = 0; at + 1 < answer.size(); ++at)
    ASSERT_EQ(give(server, answer.substr(at, 1), token), ServerHandshake::Result::NeedsMore);
  EXPECT_EQ(give(server, answer.substr(answer.size() - 1), token), ServerHandshake::Result::Proven);
}

TEST(Handshake, AnotherTokenIsRefused) {
  const JobToken right = JobToken::from_secret(kPortSecret);
  const JobToken wrong = JobToken::from_secret("another secret of some length");
  ServerHandshake server;
  ClientHandshake client;
  std::string bytes = server.greeting();
  client.received(bytes, wrong);
  EXPECT_EQ(give(server, client.answer(wrong), right), ServerHandshake::Result::WrongToken);
  bytes = ServerHandshake::refusal();
  EXPECT_EQ(client.received(bytes, wrong), ClientHandshake::Result::WrongToken);
}

TEST(Handshake, WhatWasOverheardCanNotBePlayedAgain) {
  const JobToken token = JobToken::from_secret(kPortSecret);
  ServerHandshake first;
  ClientHandshake client;
  std::string bytes = first.greeting();
  client.received(bytes, token);
  const std::string answer = client.answer(token);
  ServerHandshake second;
  EXPECT_EQ(give(second, answer, token), ServerHandshake::Result::WrongToken);
}

TEST(Handshake, AServerWithoutTheTokenIsFoundOut) {
  const JobToken token = JobToken::from_secret(kPortSecret);
  ServerHandshake server;
  ClientHandshake client;
  std::string bytes = server.greeting();
  client.received(bytes, token);
  give(server, client.answer(token), token);
  bytes = server.reply(JobToken::from_secret("another secret of some length"));
  EXPECT_EQ(client.received(bytes, token), ClientHandshake::Result::WrongServer);
}

TEST(Handshake, StrangersAreKnownByTheirFirstBytes) {
  const JobToken token = JobToken::from_secret(kPortSecret);
  ServerHandshake server;
  EXPECT_EQ(give(server, "GET", token), ServerHandshake::Result::Stranger);
  ClientHandshake client;
  std::string bytes = "HTTP/1.1";
  EXPECT_EQ(client.received(bytes, token), ClientHandshake::Result::Stranger);
}

// ---- frames

TEST(Frames, ComeBackWhole) {
  FrameReader reader;
  const std::string bytes = frame_head({{"type", "a"}}, 3) + "xyz" + frame_head({{"type", "b"}}, 0);
  for (const char byte : bytes.substr(0, bytes.size() - 1)) {
    reader.feed({&byte, 1});
  }
  const auto first = reader.next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->type(), "a");
  EXPECT_EQ(first->payload, "xyz");
  EXPECT_FALSE(reader.next().has_value());
  reader.feed({&bytes.back(), 1});
  EXPECT_EQ(reader.next()->type(), "b");
}

TEST(Frames, LimitsHold) {
  const auto refuses = [](const std::string& bytes) {
    FrameReader reader;
    reader.feed(bytes);
    EXPECT_THROW(reader.next(), CommError) << bytes.substr(0, 40);
  };
  const auto head = [](const std::string& text) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(text.size());
    return bytes + text;
  };
  refuses(std::string(8, '\xff'));
  refuses(std::string("\0\0\0\0\xff\xff\xff\x7f", 8));
  refuses(head("[1]"));
  refuses(head("not json"));
  refuses(head("{\"a\":" + std::string(20, '[') + std::string(20, ']') + "}"));
}

// ---- endpoints

TEST(Endpoint, IsReadInItsForms) {
  EXPECT_EQ(parse_endpoint("host:1234", 29400, "x"), (Endpoint{"host", 1234}));
  EXPECT_EQ(parse_endpoint("host", 29400, "x"), (Endpoint{"host", 29400}));
  EXPECT_EQ(parse_endpoint("[fd77::1]:80", 29400, "x"), (Endpoint{"fd77::1", 80}));
  EXPECT_EQ(parse_endpoint("fd77::1", 29400, "x"), (Endpoint{"fd77::1", 29400}));
  EXPECT_EQ((Endpoint{"fd77::1", 80}).text(), "[fd77::1]:80");
  for (const char* wrong :
       {"", ":1", "host:", "host:x", "host:70000", "[fd77::1", "[::1]x", "[::1]:"})
    EXPECT_THROW(parse_endpoint(wrong, 29400, "x"), ConfigError) << wrong;
}

TEST(Endpoint, APortThatIsTakenIsNamed) {
  const BoundListener held = listen_on("127.0.0.1", 0);
  EXPECT_GT(held.endpoint.port, 0);
  try {
    listen_on("127.0.0.1", held.endpoint.port);
    FAIL() << "two listeners on one port";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find(std::to_string(held.endpoint.port)), std::string::npos);
  }
}

TEST(Endpoint, LoopbackIsMeantOnlyIfSaid) {
  EXPECT_EQ(local_endpoint(listen_on("localhost", 0).socket.get()).host.substr(0, 4) == "127." ||
                local_endpoint(listen_on("localhost", 0).socket.get()).host == "::1",
            true);
  const BoundListener everywhere = listen_on("no-such-host.invalid", 0);
  EXPECT_FALSE(is_loopback_address(local_endpoint(everywhere.socket.get()).host));
  EXPECT_EQ(everywhere.endpoint.host, "127.0.0.1");
}

TEST(Endpoint, ThisHostIsKnownByItsAddressesAndNames) {
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_TRUE(is_this_host("::1"));
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_FALSE(is_this_host("192.0.2.77"));
  EXPECT_EQ(address_towards("127.0.0.5"), "127.0.0.1");
  EXPECT_EQ(address_towards("no-such-host.invalid"), "");
}

}  // namespace
}  // namespace convoy::rendezvous
