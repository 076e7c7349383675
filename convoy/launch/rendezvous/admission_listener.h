// SPDX-License-Identifier: Apache-2.0
//
// The listening port, and its connections that have not yet proven that they hold the job token.
// Each of these connections has a small fixed buffer and a deadline. Their number is bounded, and
// they cause hardly any log lines. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/log.h"
#include "convoy/launch/rendezvous/handshake.h"
#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::rendezvous {

struct AdmissionLimits {
  int max_unproven = 256;
  std::chrono::milliseconds handshake_limit{3'000};
};

// Adds, changes or removes a descriptor that the epoll `poll` watches. `operation`: an EPOLL_CTL_
// constant. Throws IoError.
void watch(const Descriptor& poll, int descriptor, uint64_t number, uint32_t events, int operation);

class AdmissionListener {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `listener` listens and is non-blocking. Throws IoError.
  AdmissionListener(Descriptor listener, JobToken token, AdmissionLimits limits, Log log);

  // Readable when serve() has something to do. Call serve() a few times per second even if it is
  // not.
  int descriptor() const { return poll_.get(); }

  // Accepts connections, continues their proofs and drops the late ones. Returns the connections
  // that have proven themselves, non-blocking, with nothing read beyond the proof.
  std::vector<Descriptor> serve(TimePoint now);

 private:
  struct UnprovenPeer {
    Descriptor socket;
    ServerHandshake handshake;
    TimePoint since;
  };
  using UnprovenPeers = std::map<uint64_t, UnprovenPeer>;  // by number: the oldest first

  void accept_some(TimePoint now);
  bool make_room(TimePoint now);
  void pause();
  // Returns true when the peer is done, proven or not.
  bool advance(UnprovenPeer& peer, std::vector<Descriptor>& proven, TimePoint now);
  void report_wrong_token(int socket, TimePoint now);

  Descriptor listener_;
  Descriptor poll_;
  JobToken token_;
  AdmissionLimits limits_;
  Log log_;
  UnprovenPeers unproven_;
  uint64_t next_number_ = 1;  // 0 is the listener
  bool paused_ = false;
  TimePoint report_again_at_{};
  int unreported_ = 0;
};

}  // namespace convoy::rendezvous
