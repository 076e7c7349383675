// SPDX-License-Identifier: Apache-2.0
//
// The hub and the user's identity: the environment variables of huggingface_hub, read in this one
// place.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a slash at the end
  std::string token = {};                           // empty: anonymous access
  std::string token_source = {};                    // name of the token's variable or file
  bool is_offline = false;                          // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
  int64_t stall_seconds = 30;                       // HF_HUB_DOWNLOAD_TIMEOUT
  std::string certificates = {};                    // http::trusted_certificates()
};

// Reads the settings. The token is from the first of these that is set: HF_TOKEN,
// HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, the file $HF_HOME/token. There is no token under
// HF_HUB_DISABLE_IMPLICIT_TOKEN. Throws ConfigError for invalid values.
HubSettings read_hub_settings();

}  // namespace convoy::hub
