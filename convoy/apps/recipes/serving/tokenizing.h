// SPDX-License-Identifier: Apache-2.0
//
// Texts and conversations as tokens, and back, in the form of vLLM's /tokenize and /detokenize.
#pragma once

#include <functional>
#include <string>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/serving/api_request.h"
#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::recipes {

class Tokenizing {
 public:
  // Both must outlive it. `template_kwargs`: overridden by the variables of a request.
  Tokenizing(const data::SampleEncoder& encoder, const LoadedModel& loaded, Json template_kwargs)
      : encoder_(encoder), loaded_(loaded), template_kwargs_(std::move(template_kwargs)) {}

  // Returns the ids of each prompt of a request. Throws ApiError, DataError.
  std::vector<std::vector<int32_t>> prompts(const ApiRequest& request) const;

  // The answer to /tokenizer_info: what a client needs besides /tokenize and /detokenize.
  Json info() const;
  // tokenize() and detokenize() return the answer to a request with this body. `check_model` throws
  // for a model name that is not allowed. Both throw ApiError, DataError.
  using CheckModel = std::function<void(const std::string&)>;
  Json tokenize(std::string_view body, const CheckModel& check_model) const;
  Json detokenize(std::string_view body, const CheckModel& check_model) const;

 private:
  std::vector<int32_t> chat_tokens(FieldReader& fields) const;
  std::vector<int32_t> text_tokens(FieldReader& fields) const;
  Json variables(const Json& kwargs, const Json& tools) const;
  const std::vector<int32_t>& checked(const std::vector<int32_t>& ids, const char* field) const;

  const data::SampleEncoder& encoder_;
  const LoadedModel& loaded_;
  Json template_kwargs_;
};

}  // namespace convoy::recipes
