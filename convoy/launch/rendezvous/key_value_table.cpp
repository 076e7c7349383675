// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/key_value_table.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/rendezvous/messages.h"

namespace convoy::rendezvous {
namespace {

constexpr size_t kMaxKeys = 1 << 16;
constexpr int64_t kEntryOverheadBytes = 128;

struct Parts {
  std::vector<std::string> keys;
  std::string rest;
};

Parts parts_of(const Frame& request) {
  const auto lengths = request.head.find("key_bytes");
  Parts parts;
  size_t at = 0;
  if (lengths != request.head.end()) {
    CONVOY_CHECK(lengths->is_array() && lengths->size() <= kMaxKeys, CommError,
                 "a store request has no list of keys");
    for (const Json& length : *lengths) {
      CONVOY_CHECK(
          length.is_number_unsigned() && length.get<uint64_t>() <= request.payload.size() - at,
          CommError, "a store request is shorter than its keys");
      parts.keys.push_back(request.payload.substr(at, length.get<size_t>()));
      at += length.get<size_t>();
    }
  }
  parts.rest = request.payload.substr(at);
  return parts;
}

int64_t entry_bytes(const std::string& key, const std::string& value) {
  return static_cast<int64_t>(key.size() + value.size()) + kEntryOverheadBytes;
}

}  // namespace

void KeyValueTable::handle(ClientId client, const Frame& request, TimePoint now) {
  CONVOY_CHECK(waiters_.count(client) == 0, CommError, "a store request before the last answer");
  const std::string type = request.type();
  Parts parts = parts_of(request);
  if (type == "num_keys") return ok(client, {{"number", values_.size()}});
  CONVOY_CHECK(!parts.keys.empty() || type == "wait" || type == "check", CommError,
               "the store request `{}` has no key", type);
  if (type == "wait" || type == "get")
    return wait(client, std::move(parts.keys), type == "get", request.head, now);
  if (type == "check") {
    bool all = true;
    for (const std::string& key : parts.keys) all = all && values_.count(key) != 0;
    return ok(client, {{"number", all ? 1 : 0}});
  }
  const std::string& key = parts.keys.front();
  if (type == "set") {
    if (put(client, key, std::move(parts.rest))) ok(client);
  } else if (type == "add") {
    add(client, key, read_number(request.head, "amount"));
  } else if (type == "compare_set") {
    const auto expected_bytes = static_cast<uint64_t>(read_number(request.head, "expected_bytes"));
    CONVOY_CHECK(expected_bytes <= parts.rest.size(), CommError, "a compare_set that is too short");
    compare_set(client, key, parts.rest.substr(0, expected_bytes),
                parts.rest.substr(expected_bytes));
  } else if (type == "remove") {
    ok(client, {{"number", remove(key) ? 1 : 0}});
  } else {
    throw CommError(fmt::format("an unknown store request `{}`", type));
  }
}

KeyValueTable::Value KeyValueTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

bool KeyValueTable::put(ClientId client, const std::string& key, std::string value) {
  const Value old = find(key);
  const int64_t grown =
      num_bytes_ + entry_bytes(key, value) - (old == nullptr ? 0 : entry_bytes(key, *old));
  if (grown > max_bytes_) {
    error(client, "limit",
          fmt::format("the store is full: {} bytes of keys and values, at most {}", grown,
                      max_bytes_));
    return false;
  }
  num_bytes_ = grown;
  values_[key] = std::make_shared<const std::string>(std::move(value));
  const auto waiting = waiting_for_.find(key);
  if (waiting == waiting_for_.end()) return true;
  const std::unordered_set<ClientId> clients = std::move(waiting->second);
  waiting_for_.erase(waiting);
  for (const ClientId id : clients) {
    const auto found = waiters_.find(id);
    if (--found->second.num_missing > 0) continue;
    const Waiter waiter = std::move(found->second);
    waiters_.erase(found);
    complete(id, waiter);
  }
  return true;
}

void KeyValueTable::wait(ClientId client, std::vector<std::string> keys, bool wants_value,
                         const Json& head, TimePoint now) {
  constexpr int64_t kLongestMs = int64_t{30} * 24 * 3600 * 1000;
  // read_number() may throw, so it comes before any change: put() needs a waiter for every entry of
  // waiting_for_.
  const int64_t timeout_ms = std::clamp<int64_t>(read_number(head, "timeout_ms"), 0, kLongestMs);
  Waiter waiter;
  waiter.wants_value = wants_value;
  const std::unordered_set<std::string> distinct(keys.begin(), keys.end());
  for (const std::string& key : distinct) {
    if (values_.count(key) != 0) continue;
    waiting_for_[key].insert(client);
    ++waiter.num_missing;
  }
  waiter.keys = std::move(keys);
  if (waiter.num_missing == 0) return complete(client, waiter);
  waiter.deadline = now + std::chrono::milliseconds(timeout_ms);
  waiters_[client] = std::move(waiter);
}

void KeyValueTable::complete(ClientId client, const Waiter& waiter) {
  if (!waiter.wants_value) return ok(client);
  const Value value = find(waiter.keys.front());
  ok(client, Json::object(), value == nullptr ? std::make_shared<const std::string>() : value);
}

void KeyValueTable::add(ClientId client, const std::string& key, int64_t amount) {
  int64_t number = 0;
  if (const Value old = find(key)) {
    const auto held = text_as<int64_t>(*old);
    if (!held) return error(client, "not_a_number", "the value to add to is no number");
    number = *held;
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, amount, &sum))
    return error(client, "not_a_number", "the sum does not fit into 64 bits");
  if (put(client, key, std::to_string(sum))) ok(client, {{"number", sum}});
}

void KeyValueTable::compare_set(ClientId client, const std::string& key,
                                const std::string& expected, std::string desired) {
  const Value old = find(key);
  const bool swaps = old == nullptr ? expected.empty() : *old == expected;
  if (swaps) {
    if (put(client, key, std::move(desired))) ok(client, Json::object(), find(key));
  } else {
    ok(client, Json::object(),
       old == nullptr ? std::make_shared<const std::string>(expected) : old);
  }
}

bool KeyValueTable::remove(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  num_bytes_ -= entry_bytes(key, *found->second);
  values_.erase(found);
  return true;
}

void KeyValueTable::stop_waiting(ClientId client) {
  const auto found = waiters_.find(client);
  if (found == waiters_.end()) return;
  for (const std::string& key : found->second.keys) {
    const auto waiting = waiting_for_.find(key);
    if (waiting == waiting_for_.end()) continue;
    waiting->second.erase(client);
    if (waiting->second.empty()) waiting_for_.erase(waiting);
  }
  waiters_.erase(found);
}

void KeyValueTable::forget(ClientId client) { stop_waiting(client); }

void KeyValueTable::expire(TimePoint now) {
  std::vector<ClientId> late;
  for (const auto& [client, waiter] : waiters_)
    if (now >= waiter.deadline) late.push_back(client);
  for (const ClientId client : late) {
    stop_waiting(client);
    error(client, "timeout", "the key was not set in time");
  }
}

void KeyValueTable::clear(const std::string& words) {
  for (const auto& [client, waiter] : waiters_) error(client, "over", words);
  waiters_.clear();
  waiting_for_.clear();
  values_.clear();
  num_bytes_ = 0;
}

void KeyValueTable::ok(ClientId client, Json members, Value payload) {
  members["type"] = "ok";
  answers_.push_back({client, std::move(members), std::move(payload)});
}

void KeyValueTable::error(ClientId client, const char* kind, const std::string& words) {
  answers_.push_back({client, {{"type", "error"}, {"kind", kind}, {"words", words}}, nullptr});
}

std::vector<KeyValueTable::Answer> KeyValueTable::take_answers() {
  return std::exchange(answers_, {});
}

}  // namespace convoy::rendezvous
