// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/handshake.h"

#include <algorithm>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/random_bytes.h"

namespace convoy::rendezvous {
namespace {

// The digit is the version of everything that follows.
constexpr std::string_view kMagic = "CONVOY2\n";
constexpr std::string_view kWelcome = "WELCOME\n";
constexpr std::string_view kRefused = "REFUSED\n";
static_assert(kMagic.size() == kMagicBytes && kWelcome.size() == kMagicBytes &&
              kRefused.size() == kMagicBytes);

std::string proof(const JobToken& token, std::string_view who, std::string_view server_nonce,
                  std::string_view client_nonce) {
  std::string message(who);
  message += server_nonce;
  message += client_nonce;
  return hmac_sha256(token.key(), message);
}

}  // namespace

ServerHandshake::ServerHandshake() {
  const std::string nonce = random_bytes(kNonceBytes);
  std::copy(nonce.begin(), nonce.end(), nonce_.begin());
}

std::string ServerHandshake::greeting() const {
  return std::string(kMagic) + std::string(nonce_.data(), nonce_.size());
}

ServerHandshake::Result ServerHandshake::received(size_t count, const JobToken& token) {
  filled_ += count;
  const std::string_view answer(answer_.data(), filled_);
  const size_t magic_bytes = std::min(filled_, kMagicBytes);
  if (answer.substr(0, magic_bytes) != kMagic.substr(0, magic_bytes)) return Result::Stranger;
  if (filled_ < kAnswerBytes) return Result::NeedsMore;
  const std::string wanted = proof(token, "client", {nonce_.data(), nonce_.size()},
                                   answer.substr(kMagicBytes, kNonceBytes));
  return equal_in_constant_time(wanted, answer.substr(kMagicBytes + kNonceBytes))
             ? Result::Proven
             : Result::WrongToken;
}

std::string ServerHandshake::reply(const JobToken& token) const {
  const std::string_view client_nonce(answer_.data() + kMagicBytes, kNonceBytes);
  return std::string(kWelcome) +
         proof(token, "server", {nonce_.data(), nonce_.size()}, client_nonce);
}

std::string ServerHandshake::refusal() {
  return std::string(kRefused) + std::string(kProofBytes, '\0');
}

ClientHandshake::ClientHandshake() : nonce_(random_bytes(kNonceBytes)) {}

ClientHandshake::Result ClientHandshake::received(std::string& bytes, const JobToken& token) {
  const std::string_view head = std::string_view(bytes).substr(0, kMagicBytes);
  if (server_nonce_.empty()) {
    if (head != kMagic.substr(0, head.size())) return Result::Stranger;
    if (bytes.size() < kGreetingBytes) return Result::NeedsMore;
    server_nonce_ = bytes.substr(kMagicBytes, kNonceBytes);
    bytes.erase(0, kGreetingBytes);
    return Result::SendAnswer;
  }
  if (head != kWelcome.substr(0, head.size()) && head != kRefused.substr(0, head.size()))
    return Result::Stranger;
  if (bytes.size() < kReplyBytes) return Result::NeedsMore;
  if (head == kRefused) return Result::WrongToken;
  const std::string wanted = proof(token, "server", server_nonce_, nonce_);
  const bool proven =
      equal_in_constant_time(wanted, std::string_view(bytes).substr(kMagicBytes, kProofBytes));
  bytes.erase(0, kReplyBytes);
  return proven ? Result::Proven : Result::WrongServer;
}

std::string ClientHandshake::answer(const JobToken& token) const {
  return std::string(kMagic) + nonce_ + proof(token, "client", server_nonce_, nonce_);
}

}  // namespace convoy::rendezvous
