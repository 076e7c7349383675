// SPDX-License-Identifier: Apache-2.0
//
// The events of a streamed message, made from the parts of a streamed chat answer.
// https://docs.claude.com/en/docs/build-with-claude/streaming
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "convoy/apps/serving/json_answer.h"

namespace convoy::serving {

// One thread.
class MessagesStream {
 public:
  // `form_field`: as in EngineRequest.
  explicit MessagesStream(std::string form_field = {}) : form_field_(std::move(form_field)) {}

  // `part`: the next bytes of the chat's stream. Returns the events that they make; may be empty.
  std::string take(std::string_view part);

 private:
  void take_data(const Json& data);
  void begin(const Json& data);
  void take_delta(const Json& delta);
  void take_call(const Json& call);
  // Opens a block of this type unless it is open already; another open block is closed.
  void open_block(std::string_view type, Json block);
  void close_block();
  void add_delta(const Json& delta);
  void end(const Json& usage);
  void put(std::string_view name, Json data);

  std::string form_field_;
  std::string unread_;  // bytes of an event that is not whole
  std::string events_;
  bool has_begun_ = false;
  std::string block_;   // type of the open block; empty: none
  int64_t index_ = -1;  // number of the newest block
  Json finish_reason_;
  Json stop_string_;
};

}  // namespace convoy::serving
