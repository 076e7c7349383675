// SPDX-License-Identifier: Apache-2.0
//
// Locates one assistant turn of a conversation by rendering parts of the conversation: what precedes the turn, and the
// turn with a letter put to its content. Every call costs a few renders of a prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace convoy::data {

// A byte range of the rendered text.
struct TurnSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t message = 0;  // index in the conversation; with tags, the ordinal of the span

  bool operator==(const TurnSpan&) const = default;
};

using RenderMessages =
    std::function<std::string(const nlohmann::ordered_json& messages, bool add_generation_prompt)>;

class TurnFinder {
 public:
  // `messages` and `full`, the whole conversation as rendered, must outlive the finder.
  TurnFinder(RenderMessages render, const nlohmann::ordered_json& messages, const std::string& full)
      : render_(std::move(render)), messages_(messages), full_(full) {}

  // Throws DataError when the turn cannot be located for certain.
  TurnSpan find(size_t index) const;

  // What the template writes to open an assistant turn: the generation prompt.
  std::optional<std::string> turn_header(size_t index) const;

 private:
  std::string render_first(size_t count, bool add_generation_prompt) const;
  std::optional<TurnSpan> by_prefix(size_t index) const;
  std::optional<TurnSpan> by_probe(size_t index) const;
  std::optional<TurnSpan> by_closing(size_t index) const;
  std::optional<std::string> render_probed(size_t count, size_t index, bool at_end) const;
  std::optional<size_t> probed_begin(size_t index) const;

  RenderMessages render_;
  const nlohmann::ordered_json& messages_;
  const std::string& full_;
};

}  // namespace convoy::data
