// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/rdzv_conf.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::launch {
namespace {

constexpr const char* kFlag = "--rdzv-conf";
constexpr std::array kKeys = {
    "join_timeout",  "last_call_timeout", "keep_alive_interval", "keep_alive_max_attempt",
    "is_host",       "store_type",        "use_libuv",           "timeout",
    "close_timeout", "heartbeat_timeout", "read_timeout"};
constexpr double kMostSeconds = 1e7;
constexpr int kHeartbeatsOfTorchrun = 3;  // torchrun's default for keep_alive_max_attempt

[[noreturn]] void refuse(const std::string& key, const char* wanted, const std::string& value) {
  throw ConfigError(fmt::format("{}: {} needs {}, found `{}`", kFlag, key, wanted, value),
                    {.key = "rdzv_conf", .hint = fmt::format("correct {}, or leave it out", key)});
}

std::chrono::milliseconds duration_of(const std::string& key, const std::string& value) {
  const double seconds = text_as<double>(value).value_or(0);
  if (!(seconds > 0) || seconds > kMostSeconds) refuse(key, "a number of seconds above 0", value);
  return milliseconds_of(seconds);
}

int count_of(const std::string& key, const std::string& value) {
  const int count = text_as<int>(value).value_or(0);
  if (count < 1 || count > 1'000'000) refuse(key, "a whole number from 1 on", value);
  return count;
}

// Reads torch's spellings of true and false.
bool truth_of(const std::string& key, const std::string& found) {
  const std::string value = lower_case(found);
  for (const char* const yes : {"1", "true", "t", "yes", "y"})
    if (value == yes) return true;
  for (const char* const no : {"0", "false", "f", "no", "n"})
    if (value == no) return false;
  refuse(key, "true or false", found);
}

struct Heartbeats {
  std::optional<std::chrono::milliseconds> interval;
  std::optional<int> most_missed;
};

// torchrun counts missed heartbeats; here the limit is the duration of that many heartbeats. A
// count alone is meant for torchrun's interval of five seconds, so it never makes the limit shorter
// than its default.
void set_heartbeats(const Heartbeats& wanted, RendezvousConf& conf) {
  if (!wanted.interval && !wanted.most_missed) return;
  const std::chrono::milliseconds usual = conf.silence_limit;
  conf.heartbeat = wanted.interval.value_or(conf.heartbeat);
  conf.silence_limit = std::min(conf.heartbeat * wanted.most_missed.value_or(kHeartbeatsOfTorchrun),
                                milliseconds_of(kMostSeconds));
  if (!wanted.interval || !wanted.most_missed)
    conf.silence_limit = std::max(usual, conf.silence_limit);
  if (conf.silence_limit < 2 * conf.heartbeat)
    throw ConfigError(
        fmt::format("{}: a node is called lost when it missed two heartbeats at least, found "
                    "keep_alive_max_attempt={}",
                    kFlag, wanted.most_missed.value_or(kHeartbeatsOfTorchrun)),
        {.key = "rdzv_conf", .hint = "such as --rdzv-conf keep_alive_max_attempt=3"});
}

// True when `key` is one of torchrun's keys without effect here; then a note says so.
bool note_without_effect(const std::string& key, const std::string& value, RendezvousConf& conf) {
  const auto note = [&](const char* why) {
    conf.notes.push_back(fmt::format("{} {} has no effect: {}", kFlag, key, why));
  };
  if (key == "timeout") {
    duration_of(key, value);
    note("join_timeout is what counts");
  } else if (key == "close_timeout" || key == "read_timeout" || key == "heartbeat_timeout") {
    duration_of(key, value);
    note("no step here waits for it");
  } else if (key == "use_libuv") {
    truth_of(key, value);
    note("the nodes meet without torch's store");
  } else {
    return false;
  }
  return true;
}

}  // namespace

RendezvousConf parse_rendezvous_conf(std::string_view text) {
  RendezvousConf conf;
  Heartbeats heartbeats;
  std::istringstream entries{std::string(text)};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string key(trimmed(std::string_view(entry).substr(0, equals), " "));
    const std::string value(
        equals == entry.size() ? "" : trimmed(std::string_view(entry).substr(equals + 1), " "));
    if (key.empty() || value.empty())
      throw ConfigError(fmt::format("{} needs key=value pairs, found `{}`", kFlag, entry),
                        {.key = "rdzv_conf",
                         .hint = "such as --rdzv-conf join_timeout=600,keep_alive_interval=5"});
    if (key == "join_timeout") {
      conf.join_timeout = duration_of(key, value);
    } else if (key == "last_call_timeout") {
      conf.last_call_timeout = duration_of(key, value);
    } else if (key == "keep_alive_interval") {
      heartbeats.interval = duration_of(key, value);
    } else if (key == "keep_alive_max_attempt") {
      heartbeats.most_missed = count_of(key, value);
    } else if (key == "is_host") {
      conf.is_host = truth_of(key, value);
    } else if (key == "store_type") {
      if (value != "tcp") refuse(key, "tcp: the nodes meet over the network", value);
    } else if (!note_without_effect(key, value, conf)) {
      throw ConfigError(
          fmt::format("{}: unknown key `{}`{}", kFlag, key,
                      did_you_mean(key, {kKeys.begin(), kKeys.end()})),
          {.key = "rdzv_conf", .hint = fmt::format("known keys are {}", fmt::join(kKeys, ", "))});
    }
  }
  set_heartbeats(heartbeats, conf);
  return conf;
}

}  // namespace convoy::launch
