// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/control_store/control_store.h"

#include <utility>

namespace convoy::comm {
namespace {

std::string_view text_of(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

ControlStore::ControlStore(rendezvous::KeyValueOptions options, rendezvous::JobToken token,
                           std::chrono::milliseconds timeout)
    : c10d::Store(timeout),
      options_(std::move(options)),
      token_(std::move(token)),
      client_(options_, token_) {}

c10::intrusive_ptr<c10d::Store> ControlStore::clone() {
  return c10::make_intrusive<ControlStore>(options_, token_, timeout_);
}

void ControlStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  client_.set(key, text_of(value));
}

std::vector<uint8_t> ControlStore::compareSet(const std::string& key,
                                              const std::vector<uint8_t>& expected,
                                              const std::vector<uint8_t>& desired) {
  return bytes_of(client_.compare_set(key, text_of(expected), text_of(desired)));
}

std::vector<uint8_t> ControlStore::get(const std::string& key) {
  return bytes_of(client_.get(key, timeout_));
}

int64_t ControlStore::add(const std::string& key, int64_t value) { return client_.add(key, value); }

bool ControlStore::deleteKey(const std::string& key) { return client_.remove(key); }

bool ControlStore::check(const std::vector<std::string>& keys) { return client_.check(keys); }

int64_t ControlStore::getNumKeys() { return client_.num_keys(); }

void ControlStore::wait(const std::vector<std::string>& keys) { client_.wait(keys, timeout_); }

void ControlStore::wait(const std::vector<std::string>& keys,
                        const std::chrono::milliseconds& timeout) {
  client_.wait(keys, timeout);
}

}  // namespace convoy::comm
