// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/http/curl_library.h"
#include "convoy/core/io/hub_cache.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

bool is_on(const char* name) {
  std::string value = environment_text(name);
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char letter) { return std::toupper(letter); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// The token becomes part of an HTTP header. A line break in it would begin another header.
std::string checked_token(const std::string& text, const std::string& source) {
  std::string token(trimmed(text, " \t\r\n"));
  for (const unsigned char letter : token)
    if (letter <= ' ' || letter >= 127)
      throw ConfigError(
          fmt::format("{} holds no token: wanted letters and digits without spaces", source),
          {.key = source, .hint = "copy the token again"});
  return token;
}

void read_token(HubSettings& settings) {
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    settings.token = checked_token(environment_text(name), name);
    settings.token_source = name;
    if (!settings.token.empty()) return;
  }
  const std::string named = environment_text("HF_TOKEN_PATH");
  const fs::path file = named.empty() ? io::hub_home_folder() / "token" : fs::path(named);
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored))
    settings.token = checked_token(read_file(file, 4096), file.string());
  settings.token_source = settings.token.empty() ? "" : file.string();
}

int64_t seconds_or(const char* name, int64_t fallback) {
  const std::string text = environment_text(name);
  if (text.empty()) return fallback;
  const int64_t seconds = text_as<int64_t>(text).value_or(0);
  if (seconds < 1 || seconds > 86400)
    throw ConfigError(
        fmt::format("{} is `{}`: wanted seconds, from 1 to 86400", name, text),
        {.key = name,
         .hint = fmt::format("set it to a number of seconds, or unset it: unset {}", name)});
  return seconds;
}

}  // namespace

HubSettings read_hub_settings() {
  HubSettings settings;
  if (const std::string endpoint = environment_text("HF_ENDPOINT"); !endpoint.empty())
    settings.endpoint = endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  read_token(settings);
  settings.is_offline = is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
  settings.stall_seconds = seconds_or("HF_HUB_DOWNLOAD_TIMEOUT", settings.stall_seconds);
  settings.certificates = http::trusted_certificates();
  return settings;
}

}  // namespace convoy::hub
