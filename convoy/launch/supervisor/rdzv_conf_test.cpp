// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/rdzv_conf.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

std::string refusal_of(const std::string& text) {
  try {
    parse_rendezvous_conf(text);
  } catch (const ConfigError& error) {
    return error.sentence();
  }
  return "accepted";
}

TEST(RendezvousConf, DefaultsOfTorchrunAreTaken) {
  const RendezvousConf conf = parse_rendezvous_conf(
      "join_timeout=600,last_call_timeout=30,close_timeout=30,heartbeat_timeout=5,"
      "keep_alive_interval=5,keep_alive_max_attempt=3,read_timeout=60,store_type=tcp,is_host=True,"
      "use_libuv=1,timeout=900");
  EXPECT_EQ(conf.heartbeat, milliseconds(5'000));
  EXPECT_EQ(conf.silence_limit, milliseconds(15'000));
  EXPECT_TRUE(conf.is_host.value_or(false));
  ASSERT_EQ(conf.notes.size(), 5U);
  for (const char* const key :
       {"close_timeout", "heartbeat_timeout", "read_timeout", "use_libuv", "timeout"}) {
    bool named = false;
    for (const std::string& note : conf.notes)
      named = named || note.find(std::string(key) + " has no effect") != std::string::npos;
    EXPECT_TRUE(named) << key;
  }
}

TEST(RendezvousConf, EachHeartbeatKeyIsTakenAlone) {
  const RendezvousConf interval = parse_rendezvous_conf("keep_alive_interval=5");
  EXPECT_EQ(interval.heartbeat, milliseconds(5'000));
  EXPECT_EQ(interval.silence_limit, milliseconds(15'000));
  const RendezvousConf usual = parse_rendezvous_conf("");
  const RendezvousConf count = parse_rendezvous_conf("keep_alive_max_attempt=3");
  EXPECT_EQ(count.heartbeat, usual.heartbeat);
  EXPECT_EQ(count.silence_limit, usual.silence_limit);
  EXPECT_EQ(parse_rendezvous_conf("keep_alive_max_attempt=30").silence_limit, milliseconds(30'000));
  EXPECT_EQ(
      parse_rendezvous_conf(" keep_alive_interval = 0.5, keep_alive_max_attempt=4").silence_limit,
      milliseconds(2'000));
}

// Deadlines are counted in nanoseconds with 64 bits, so the longest silence must still fit.
TEST(RendezvousConf, TheLongestSilenceStillMakesADeadline) {
  const RendezvousConf conf =
      parse_rendezvous_conf("keep_alive_interval=1e5,keep_alive_max_attempt=1000000");
  EXPECT_EQ(conf.heartbeat, milliseconds(100'000'000));
  EXPECT_EQ(conf.silence_limit, milliseconds(10'000'000'000));
}

TEST(RendezvousConf, BadValuesNameTheirKey) {
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"keep_alive_interval=5,keep_alive_max_attempt=1", "keep_alive_max_attempt=1"},
           {"keep_alive_max_attempt=2.5", "keep_alive_max_attempt needs a whole number"},
           {"heartbeat_timeout=soon", "heartbeat_timeout"},
           {"use_libuv=maybe", "use_libuv"},
           {"is_host=2", "is_host needs true or false, found `2`"},
           {"store_type=file", "store_type"},
           {"join_timeout=", "key=value"},
           {"keep_alive_intervall=5", "did you mean `keep_alive_interval`"}})
    EXPECT_NE(refusal_of(text).find(word), std::string::npos) << text << ": " << refusal_of(text);
}

}  // namespace
}  // namespace convoy::launch
