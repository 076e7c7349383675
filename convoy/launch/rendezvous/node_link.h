// SPDX-License-Identifier: Apache-2.0
//
// A launcher's end of the rendezvous: joins the job, waits for its part in each attempt, reports
// the result, and receives the coordinator's decisions. A thread of its own sends heartbeats and
// notices a silent coordinator, so a busy launcher is not taken for a lost node.
//
//   NodeLink link(options, token);
//   for (;;) {
//     JoinOutcome outcome = link.wait_for_assignment(master_port, stop_descriptor);
//     if (turn.kind != JoinOutcome::Kind::Assigned) break;  // ended, or the descriptor became
// readable
//     ... start the ranks; poll link.descriptor(), read link.next() ...
//     link.report_attempt_end(end);                  // always, once per assignment
//   }
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/launch/rendezvous/attempt_messages.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::rendezvous {

struct NodeLinkOptions {
  Endpoint coordinator;
  NodeOffer offer;
  std::chrono::milliseconds join_timeout{600'000};  // until the coordinator has been reached
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence_limit{8'000};     // a coordinator silent for this long is lost
  std::chrono::milliseconds stranger_limit{15'000};   // for a port where another program answers
  std::chrono::milliseconds notice_interval{10'000};  // "still waiting for the master"
  WallClock wall_clock = wall_clock_ns;               // sent to the coordinator, which compares it
  Log log;
};

// A decision of the coordinator. A launcher stops its ranks on every kind. If the job has not
// ended, it then reports the attempt's end and waits for the next attempt.
struct Notice {
  enum class Kind {
    StopForFailure,   // a rank failed; `cause` names it
    StopForResize,    // a node joined or left in good order
    PeerNodeLost,     // a node has gone silent or ended; `cause` names it
    StopRequested,    // another node was asked to stop: let the ranks save
    ShutDown,         // the job has ended: `exit_code`, `words`
    CoordinatorLost,  // the job has ended, decided here: `words` name the master's address
    Refused,          // the job has ended here: the coordinator does not take this node
  };
  Kind kind = Kind::ShutDown;
  int exit_code = 0;
  std::string words = {};   // for people; empty for a job that ended well
  FailureCause cause = {};  // StopForFailure, PeerNodeLost
  // StopRequested, StopForResize: the signal that the ranks of the other node got; 0 = unknown.
  int signal = 0;
  // ShutDown: the ranks that did not enter a collective, over all nodes; empty = none is known.
  std::string diagnosis = {};

  bool ends_job() const { return kind >= Kind::ShutDown; }
};

struct JoinOutcome {
  enum class Kind { Assigned, Ended, Interrupted };
  Kind kind = Kind::Interrupted;
  Assignment assignment;  // Assigned
  Notice end;             // Ended: a notice that ends_job()
};

// Thread-safe, except that only one thread at a time may wait.
class NodeLink {
 public:
  // Returns at once; a thread makes the connection.
  NodeLink(NodeLinkOptions options, JobToken token);
  ~NodeLink();  // calls leave()
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // Reports this node as ready for the next attempt. `master_port` is free here in case this node
  // becomes node 0. Blocks until the attempt is assigned, the job has ended, or `stop_descriptor`
  // (-1 = none) is readable; after an interruption it may be called again. Notices of an earlier
  // attempt are dropped. Throws ConfigError when the token or the rest of the offer is wrong (exit
  // code 2), CommError when the coordinator was never reached (13).
  JoinOutcome wait_for_assignment(int master_port, int stop_descriptor);

  // Readable while next() has a notice.
  int descriptor() const;
  std::optional<Notice> next();

  // Reports that a rank of this node failed: every other node is asked to stop. The first call of
  // an attempt counts, unless it reports "peer lost" (13) and a later one gives a cause.
  void report_failure(FailureCause cause);
  // Reports that this node's ranks were asked to stop by `signal`: every other node gets the same
  // request, and an end by that signal is no failure.
  void report_stop_request(int signal);
  void report_attempt_end(AttemptEnd end);
  // Leaves in good order: no failure for the others. Blocks up to 1 s while the message is sent.
  void leave();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace convoy::rendezvous
