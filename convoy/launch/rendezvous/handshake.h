// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a new connection prove that they hold the job token before anything else is read. No
// I/O. Three messages of fixed size:
//
//   server: magic, server nonce                                     (40 bytes)
//   client: magic, client nonce, HMAC(key, "client", both nonces)   (72 bytes)
//   server: reply, HMAC(key, "server", both nonces)               (40 bytes)
//
// Both nonces are fresh, so nothing that was overheard can be played again. Later messages are
// neither encrypted nor signed: an attacker who can rewrite packets of the network is not kept out.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::rendezvous {

constexpr size_t kMagicBytes = 8;
constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;
constexpr size_t kGreetingBytes = kMagicBytes + kNonceBytes;
constexpr size_t kAnswerBytes = kMagicBytes + kNonceBytes + kProofBytes;
constexpr size_t kReplyBytes = kMagicBytes + kProofBytes;

// One per connection that has not proven itself: keep it small.
class ServerHandshake {
 public:
  enum class Result { NeedsMore, Proven, WrongToken, Stranger };

  ServerHandshake();
  std::string greeting() const;

  // The buffer for the next bytes of the answer, and the number of bytes still missing.
  char* space() { return answer_.data() + filled_; }
  size_t space_bytes() const { return kAnswerBytes - filled_; }
  // Processes `count` bytes that were put into space(). A stranger is known by its first bytes.
  Result received(size_t count, const JobToken& token);
  std::string reply(const JobToken& token) const;  // after Proven
  static std::string refusal();                    // after WrongToken

 private:
  std::array<char, kNonceBytes> nonce_;
  std::array<char, kAnswerBytes> answer_;
  size_t filled_ = 0;
};

class ClientHandshake {
 public:
  enum class Result { NeedsMore, SendAnswer, Proven, WrongToken, WrongServer, Stranger };

  ClientHandshake();
  // Takes the server's bytes from the front of `bytes` as they come. WrongToken: the server refused
  // this token. WrongServer: the server accepted this token but does not hold it itself.
  Result received(std::string& bytes, const JobToken& token);
  std::string answer(const JobToken& token) const;  // after SendAnswer

 private:
  std::string nonce_;
  std::string server_nonce_;  // empty until the greeting was read
};

}  // namespace convoy::rendezvous
