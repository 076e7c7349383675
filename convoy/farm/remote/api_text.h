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
  std::string path;  // "/chat/completions" for messages, else "/completions"
  std::string body;
  // The sampling settings, which many texts share. If a server refuses a setting of one text, it
  // refuses it for every text with these settings.
  std::string settings;
};

// `template_kwargs`: variables for the server's chat template. The request's seed is made from its
// DrawSource. Throws nlohmann::json::exception for a prompt that is not UTF-8.
ApiText api_text(const process::TextRequest& request, const std::string& model,
                 const nlohmann::ordered_json& template_kwargs);

// The body with `max_completion_tokens`, OpenAI's newer name of the limit, in place of
// `max_tokens`. OpenAI's reasoning models accept only the newer name, older servers only the older
// name.
std::string with_newer_limit(const std::string& body);

// The content of an answer with status 200: a text, an error, or neither if the answer was cut or
// comes from another program.
struct ApiAnswer {
  // The text as the model wrote it: thoughts and tool calls that the server took out of it are put
  // back. An Error if the model wrote no text.
  std::optional<process::TextResult> text = {};
  int error_status = 0;    // status of the error in the body; 0: no error
  bool is_of_api = false;  // the server has computed an answer, perhaps without a text
};

// Bytes that are not UTF-8 and halves of surrogate pairs are replaced by U+FFFD.
// A log-probability that is no number is NaN, which JSON does not have.
ApiAnswer read_api_text(std::string_view body);

}  // namespace convoy::remote
