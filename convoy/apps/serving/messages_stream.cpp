// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/messages_stream.h"

#include <fmt/format.h>

#include <utility>

#include "convoy/apps/serving/messages_api.h"

namespace convoy::serving {
namespace {

constexpr std::string_view kData = "data: ";
constexpr std::string_view kEventEnd = "\n\n";

// An engine that fails within a stream sends its error as an event, which has no status.
int status_within_stream(const Json& error) {
  return error.at("error").value("type", "") == "invalid_request_error" ? 400 : 500;
}

}  // namespace

std::string MessagesStream::take(std::string_view part) {
  unread_ += part;
  size_t begin = 0;
  for (size_t end = unread_.find(kEventEnd); end != std::string::npos;
       end = unread_.find(kEventEnd, begin)) {
    const std::string_view event = std::string_view(unread_).substr(begin, end - begin);
    begin = end + kEventEnd.size();
    if (event.starts_with(kData) && event != "data: [DONE]")
      take_data(Json::parse(event.substr(kData.size())));
  }
  unread_.erase(0, begin);
  return std::exchange(events_, {});
}

void MessagesStream::take_data(const Json& data) {
  if (data.contains("error"))
    return put("error", message_error(status_within_stream(data), data, form_field_));
  if (!has_begun_) begin(data);
  for (const Json& choice : data.at("choices")) {
    take_delta(choice.at("delta"));
    if (choice.at("finish_reason").is_null()) continue;
    finish_reason_ = choice.at("finish_reason");
    stop_string_ = choice.value("stop_reason", Json());
  }
  if (const Json usage = data.value("usage", Json()); !usage.is_null()) end(usage);
}

// The number of the prompt's tokens is known at the end of a chat's stream; message_delta has it.
void MessagesStream::begin(const Json& data) {
  has_begun_ = true;
  put("message_start", {{"message",
                         {{"id", message_id(data.at("id"))},
                          {"type", "message"},
                          {"role", "assistant"},
                          {"model", data.at("model")},
                          {"content", Json::array()},
                          {"stop_reason", nullptr},
                          {"stop_sequence", nullptr},
                          {"usage", {{"input_tokens", 0}, {"output_tokens", 0}}}}}});
}

void MessagesStream::take_delta(const Json& delta) {
  if (const std::string thoughts = delta.value("reasoning_content", ""); !thoughts.empty()) {
    open_block("thinking", {{"thinking", ""}, {"signature", ""}});
    add_delta({{"type", "thinking_delta"}, {"thinking", thoughts}});
  }
  if (const Json text = delta.value("content", Json());
      text.is_string() && !text.get<std::string>().empty()) {
    open_block("text", {{"text", ""}});
    add_delta({{"type", "text_delta"}, {"text", text}});
  }
  for (const Json& call : delta.value("tool_calls", Json::array())) take_call(call);
}

// A call comes whole, so its block opens and closes with it.
void MessagesStream::take_call(const Json& call) {
  const Json& function = call.at("function");
  open_block("tool_use",
             {{"id", call.at("id")}, {"name", function.at("name")}, {"input", Json::object()}});
  add_delta({{"type", "input_json_delta"}, {"partial_json", function.at("arguments")}});
  close_block();
}

void MessagesStream::open_block(std::string_view type, Json block) {
  if (block_ == type) return;
  close_block();
  block_ = type;
  Json content = {{"type", type}};
  content.update(block);
  put("content_block_start", {{"index", ++index_}, {"content_block", content}});
}

void MessagesStream::close_block() {
  if (block_.empty()) return;
  block_.clear();
  put("content_block_stop", {{"index", index_}});
}

void MessagesStream::add_delta(const Json& delta) {
  put("content_block_delta", {{"index", index_}, {"delta", delta}});
}

void MessagesStream::end(const Json& usage) {
  close_block();
  put("message_delta", {{"delta",
                         {{"stop_reason", stop_reason_of(finish_reason_, stop_string_)},
                          {"stop_sequence", stop_string_}}},
                        {"usage", message_usage(usage)}});
  put("message_stop", Json::object());
}

void MessagesStream::put(std::string_view name, Json data) {
  Json whole = {{"type", name}};
  whole.update(data);
  events_ += fmt::format("event: {}\n{}", name, event(whole));
}

}  // namespace convoy::serving
