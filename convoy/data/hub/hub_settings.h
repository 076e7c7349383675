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
  std::string token = {};                           // empty: anonymous
  std::string token_source = {};                    // "HF_TOKEN", or the file it is from
  bool is_offline = false;                          // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
  int64_t stall_seconds = 30;                       // HF_HUB_DOWNLOAD_TIMEOUT
  std::string certificates = {};                    // http::trusted_certificates()
};

// The token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, the file $HF_HOME/token;
// none under HF_HUB_DISABLE_IMPLICIT_TOKEN. Throws ConfigError for invalid values.
HubSettings read_hub_settings();

}  // namespace convoy::hub
