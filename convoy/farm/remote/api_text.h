// SPDX-License-Identifier: Apache-2.0
//
// A request for a text, and its answer, in the form of OpenAI's API.
// https://platform.openai.com/docs/api-reference/chat/create and .../completions/create
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "convoy/farm/process/text_engine.h"

namespace convoy::remote {

struct ApiText {
  std::string path;  // "/chat/completions", of messages, or "/completions"
  std::string body;
  // The sampling, which many texts share: what a server refuses of it, it refuses of each.
  std::string settings;
};

// `template_kwargs`: variables for the server's chat template. The seed covers the draw of the
// request. Throws nlohmann::json::exception for a prompt that is no UTF-8.
ApiText api_text(const process::TextRequest& request, const std::string& model,
                 const nlohmann::ordered_json& template_kwargs);

// The body with OpenAI's newer name of the limit, `max_completion_tokens`, in place of
// `max_tokens`: OpenAI's reasoning models take the newer one alone, older servers the older one.
std::string with_newer_limit(const std::string& body);

// The content of an answer with status 200: a text, an error, or neither, because it was cut or is
// of another program.
struct ApiAnswer {
  // The text as the model wrote it: thoughts and calls of tools that the server has taken out of it
  // are back in it. An Error where the model wrote none.
  std::optional<process::TextResult> text = {};
  int error_status = 0;    // status of the error in the body; 0: there is none
  bool is_of_api = false;  // the server has computed, though there is no text
};

// Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD.
ApiAnswer read_api_text(std::string_view body);

}  // namespace convoy::remote
