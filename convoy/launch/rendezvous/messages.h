// SPDX-License-Identifier: Apache-2.0
//
// The types of attempt_messages.h and node_link.h as JSON and back. Reading throws CommError for
// what is missing or of the wrong type.
#pragma once

#include "convoy/launch/rendezvous/attempt_messages.h"
#include "convoy/launch/rendezvous/frame.h"
#include "convoy/launch/rendezvous/node_link.h"

namespace convoy::rendezvous {

Json to_json(const NodeOffer& offer);
Json to_json(const Assignment& assignment);
Json to_json(const FailureCause& cause);
Json to_json(const AttemptEnd& end);
Json to_json(const Notice& notice);

NodeOffer read_offer(const Json& json);
Assignment read_assignment(const Json& json);
FailureCause read_cause(const Json& json);
AttemptEnd read_attempt_end(const Json& json);
Notice read_notice(const Json& json);

// Reads one member of a message.
int64_t read_number(const Json& json, const char* key);
std::string read_text(const Json& json, const char* key);

}  // namespace convoy::rendezvous
