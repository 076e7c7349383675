// SPDX-License-Identifier: Apache-2.0
//
// Damaged messages of the rendezvous are read, or refused as a CommError, which ends only their
// connection. Any other exception would end the coordinator and the job.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/frame.h"
#include "convoy/launch/rendezvous/handshake.h"
#include "convoy/launch/rendezvous/key_value_table.h"
#include "convoy/launch/rendezvous/messages.h"
#include "files/mutated_texts.h"

namespace convoy::rendezvous {
namespace {

using testing::count;
using testing::MutatedTexts;
using testing::Outcome;

AttemptEnd attempt_end() {
  telemetry::CollectiveRecord record;
  record.group = "world";
  record.operation = "all_reduce";
  record.dtype = "float32";
  record.sequence = 7;
  record.state = telemetry::CollectiveState::Waited;
  record.waited_us_ago = 10;
  telemetry::RankFlight flight;
  flight.rank = 3;
  flight.pid = 17;
  flight.phase = "training";
  flight.records = {record, record};
  AttemptEnd end;
  end.exit_codes = {0, 139};
  end.progress = 12;
  end.cause = FailureCause{.exit_code = 139, .node_rank = 1, .host = "b", .rank = 3};
  end.flights = {flight, flight};
  return end;
}

// Returns one message of each kind that has members.
std::vector<Json> messages() {
  Assignment assignment;
  assignment.ranks_per_node = {2, 2, 1};
  assignment.master_address = "10.0.0.1";
  return {{{"type", "join"}, {"offer", to_json(NodeOffer{.run_id = "r", .host_name = "h"})}},
          {{"type", "assigned"}, {"assignment", to_json(assignment)}},
          {{"type", "attempt_end"}, {"attempt", 1}, {"end", to_json(attempt_end())}},
          {{"type", "notice"},
           {"notice", to_json(Notice{.kind = Notice::Kind::StopForFailure, .exit_code = 3})}},
          {{"type", "set"}, {"key_bytes", {1}}},
          {{"type", "get"}, {"key_bytes", {1}}, {"timeout_ms", 1000}},
          {{"type", "wait"}, {"key_bytes", {1, 1}}, {"timeout_ms", 1000}},
          {{"type", "add"}, {"key_bytes", {1}}, {"amount", 5}},
          {{"type", "remove"}, {"key_bytes", {1}}},
          {{"type", "compare_set"}, {"key_bytes", {1}}, {"expected_bytes", 2}}};
}

// Returns the frame of a message with the JSON text `text` and `payload`.
std::string framed(const std::string& text, const std::string& payload) {
  std::string bytes;
  for (const size_t length : {text.size(), payload.size()})
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
  return bytes + text + payload;
}

// Reads the message as the coordinator and the nodes do, whatever its type.
void read_all(const Json& head, Outcome& outcome) {
  for (const char* const key : {"offer", "assignment", "notice", "end", "cause"}) {
    const auto found = head.find(key);
    if (found == head.end() || !found->is_object()) continue;
    count<CommError>(outcome, [&] {
      const std::string name = key;
      if (name == "offer") read_offer(*found);
      if (name == "assignment") read_assignment(*found);
      if (name == "notice") read_notice(*found);
      if (name == "cause") read_cause(*found);
      if (name == "end") read_attempt_end(*found);
    });
  }
}

void handle(KeyValueTable& table, uint64_t client, const Frame& frame, Outcome& outcome) {
  count<CommError>(outcome, [&] {
    try {
      table.handle(client, frame, {});
    } catch (const CommError&) {
      table.forget(client);  // as if the client's connection had closed
      throw;
    }
  });
  table.take_answers();
}

TEST(MutatedMessages, AreReadOrRefused) {
  std::vector<std::string> texts;
  for (const Json& message : messages()) texts.push_back(message.dump());
  MutatedTexts mutated(texts);
  KeyValueTable table(1 << 20);
  Outcome outcome;
  for (int round = 0; round < 6000; ++round) {
    FrameReader reader;
    reader.feed(framed(mutated.next(), "abc"));
    count<CommError>(outcome, [&] {
      const std::optional<Frame> frame = reader.next();
      ASSERT_TRUE(frame);
      read_all(frame->head, outcome);
      handle(table, static_cast<uint64_t>(round % 5), *frame, outcome);
    });
    if (round % 50 == 0) table.clear("a new attempt");
  }
  EXPECT_GT(outcome.read, 500);
  EXPECT_GT(outcome.refused, 500);
}

TEST(MutatedMessages, StreamsOfFramesAreReadOrRefused) {
  std::string stream;
  for (const Json& message : messages()) stream += frame_head(message, 3) + "abc";
  MutatedTexts mutated({stream});
  Outcome outcome;
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = mutated.next();
    FrameReader reader;
    count<CommError>(outcome, [&] {
      for (size_t at = 0; at < bytes.size(); at += 97) {
        reader.feed(std::string_view(bytes).substr(at, 97));
        while (const std::optional<Frame> frame = reader.next()) read_all(frame->head, outcome);
      }
    });
  }
  EXPECT_GT(outcome.read, 500);
  EXPECT_GT(outcome.refused, 500);
}

TEST(MutatedMessages, ANestedOneIsRefusedWhateverItsSize) {
  for (const size_t levels : {17u, 1'000'000u}) {
    FrameReader reader;
    reader.feed(
        framed("{\"type\":" + std::string(levels, '[') + std::string(levels, ']') + "}", ""));
    EXPECT_THROW(reader.next(), CommError);
  }
}

TEST(MutatedMessages, HandshakesOfStrangersNeverProveAnything) {
  const JobToken token = JobToken::from_secret("a secret of sixteen or more");
  ClientHandshake genuine;
  std::string greeting = ServerHandshake().greeting();
  const std::string whole_greeting = greeting;
  ASSERT_EQ(genuine.received(greeting, token), ClientHandshake::Result::SendAnswer);
  MutatedTexts answers({genuine.answer(token), ServerHandshake::refusal(), whole_greeting});
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = answers.next();
    ServerHandshake server;
    const size_t taken = std::min(bytes.size(), server.space_bytes());
    bytes.copy(server.space(), taken);
    // The answer is for the nonce of another server, so even an undamaged answer proves nothing.
    EXPECT_NE(server.received(taken, token), ServerHandshake::Result::Proven);
    ClientHandshake client;
    bytes += answers.next();
    while (client.received(bytes, token) == ClientHandshake::Result::SendAnswer) {
    }
    EXPECT_NE(client.received(bytes, token), ClientHandshake::Result::Proven);
  }
}

}  // namespace
}  // namespace convoy::rendezvous
