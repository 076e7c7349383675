// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/rdzv_conf.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <sstream>

#include "convoy/base/error.h"
#include "convoy/base/suggest.h"

namespace convoy::launch {
namespace {

constexpr const char* kFlag = "--rdzv-conf";
constexpr std::array kKeys = {"join_timeout",
                              "last_call_timeout",
                              "keep_alive_interval",
                              "keep_alive_max_attempt",
                              "is_host",
                              "store_type",
                              "timeout",
                              "close_timeout",
                              "read_timeout"};

std::chrono::milliseconds seconds_of(const std::string& key, const std::string& value) {
  double seconds = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, seconds);
  if (error != std::errc() || stop != end || !(seconds > 0) || seconds > 1e7)
    throw ConfigError(
        fmt::format("{}: {} wants a number of seconds above 0, found `{}`", kFlag, key, value),
        {.key = "rdzv_conf"});
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

bool truth_of(const std::string& key, const std::string& value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  throw ConfigError(fmt::format("{}: {} wants true or false, found `{}`", kFlag, key, value),
                    {.key = "rdzv_conf"});
}

}  // namespace

RendezvousConf parse_rendezvous_conf(std::string_view text) {
  RendezvousConf conf;
  std::optional<std::chrono::milliseconds> attempts;
  std::istringstream entries{std::string(text)};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals);
    if (equals == std::string::npos || key.empty() || equals + 1 == entry.size())
      throw ConfigError(fmt::format("{} wants key=value pairs, found `{}`", kFlag, entry),
                        {.key = "rdzv_conf"});
    const std::string value = entry.substr(equals + 1);
    if (key == "join_timeout") {
      conf.join_timeout = seconds_of(key, value);
    } else if (key == "last_call_timeout") {
      conf.last_call_timeout = seconds_of(key, value);
    } else if (key == "keep_alive_interval") {
      conf.heartbeat = seconds_of(key, value);
    } else if (key == "keep_alive_max_attempt") {
      attempts = seconds_of(key, value);
    } else if (key == "is_host") {
      conf.is_host = truth_of(key, value);
    } else if (key == "store_type") {
      CONVOY_CHECK(value == "tcp", ConfigError, "{}: store_type is always tcp here, found `{}`",
                   kFlag, value);
    } else if (key == "timeout") {
      conf.notes.push_back("--rdzv-conf timeout has no effect; join_timeout is what counts");
    } else if (key == "close_timeout" || key == "read_timeout") {
      conf.notes.push_back(
          fmt::format("--rdzv-conf {} has no effect: nothing here waits for it", key));
    } else {
      throw ConfigError(
          fmt::format("{}: unknown key `{}`{}", kFlag, key,
                      did_you_mean(key, {kKeys.begin(), kKeys.end()})),
          {.key = "rdzv_conf", .hint = fmt::format("known keys are {}", fmt::join(kKeys, ", "))});
    }
  }
  // torchrun counts missed heartbeats; the limit is the time that so many take.
  if (attempts) conf.silence_limit = conf.heartbeat * attempts->count() / 1000;
  CONVOY_CHECK(conf.silence_limit >= 2 * conf.heartbeat, ConfigError,
               "{}: a node can not be called lost before it missed two heartbeats", kFlag);
  return conf;
}

}  // namespace convoy::launch
