// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/job_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/random_bytes.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::rendezvous {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kLeastSecretBytes = 16;
constexpr size_t kMostSecretBytes = 4096;
constexpr std::string_view kReadyKeyPrefix = "key:";  // a key as for_worker() writes it
constexpr const char* kHowToMakeOne =
    "make one with: (umask 077; openssl rand -hex 32 > token), the same on every node";

constexpr std::string_view kSpace = " \t\r\n";

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

// Empty when `text` is not the text of a key.
std::string ready_key(std::string_view text) {
  if (text.substr(0, kReadyKeyPrefix.size()) != kReadyKeyPrefix) return {};
  text.remove_prefix(kReadyKeyPrefix.size());
  if (text.size() != 2 * kKeyBytes) return {};
  std::string key;
  for (size_t byte = 0; byte < kKeyBytes; ++byte) {
    const int high = hex_digit(text[2 * byte]);
    const int low = hex_digit(text[2 * byte + 1]);
    if (high < 0 || low < 0) return {};
    key += static_cast<char>(high * 16 + low);
  }
  return key;
}

}  // namespace

JobToken::JobToken(std::string key, bool guessable) : key_(std::move(key)), guessable_(guessable) {}

JobToken JobToken::from_secret(std::string_view secret) {
  std::string key = ready_key(secret);
  if (!key.empty()) return {std::move(key), false};
  if (secret.size() < kLeastSecretBytes)
    throw ConfigError(fmt::format("a job token needs at least {} characters, found {}",
                                  kLeastSecretBytes, secret.size()),
                      {.key = kVariable, .hint = kHowToMakeOne});
  return {hmac_sha256(secret, "convoy job token 1"), false};
}

JobToken JobToken::from_file(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& message, const std::string& hint) {
    return ConfigError("the job token file " + message, {.file = path.string(), .hint = hint});
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.open()) throw fail(fmt::format("cannot be read: {}", std::strerror(errno)), {});
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    throw fail("is not a plain file", {});
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    throw fail(
        fmt::format("belongs to user {}, not to this user ({}) or root", info.st_uid, ::geteuid()),
        "copy it to a file of your own");
  if ((info.st_mode & 077) != 0)
    throw fail(fmt::format("is open to others (mode {:o}), wanted 600", info.st_mode & 0777u),
               "chmod 600 " + path.string());
  std::string text(kMostSecretBytes + 1, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  if (count < 0) throw fail(fmt::format("cannot be read: {}", std::strerror(errno)), {});
  if (static_cast<size_t>(count) > kMostSecretBytes)
    throw fail(fmt::format("is larger than {} bytes", kMostSecretBytes), kHowToMakeOne);
  text.resize(static_cast<size_t>(count));
  return from_secret(trimmed(text, kSpace));
}

JobToken JobToken::from_run_id(std::string_view run_id) {
  return {hmac_sha256("convoy job without a token 1", run_id), true};
}

JobToken JobToken::from_environment(std::string_view run_id) {
  const std::string secret = environment_text(kVariable);
  if (!secret.empty()) return from_secret(trimmed(secret, kSpace));
  const std::string file = environment_text(kFileVariable);
  if (!file.empty()) return from_file(file);
  return from_run_id(run_id);
}

std::string JobToken::new_secret() { return hex_of(random_bytes(kKeyBytes)); }

std::string JobToken::for_worker() const { return std::string(kReadyKeyPrefix) + hex_of(key_); }

}  // namespace convoy::rendezvous
