// SPDX-License-Identifier: Apache-2.0
//
// Access to JSON objects with thousands of members: an ordered object searches linearly for each
// name.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace convoy::data {

// Adds a member to an object. The object must have no member with that name.
inline void add_member(nlohmann::ordered_json& object, std::string name,
                       nlohmann::ordered_json value) {
  object.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(std::move(name),
                                                                   std::move(value));
}

inline nlohmann::ordered_json object_with_room(size_t num_members) {
  nlohmann::ordered_json::object_t members;
  members.reserve(num_members);
  return members;
}

// Finds the members of an object. Requests in the order of the members need no search.
class MemberCursor {
 public:
  // `object` must outlive the cursor.
  explicit MemberCursor(const nlohmann::ordered_json& object)
      : object_(object), next_(object.begin()) {}

  // The member's value; nullptr when there is none.
  const nlohmann::ordered_json* find(const std::string& name) {
    if (next_ == object_.end() || next_.key() != name) {
      const auto found = object_.find(name);
      if (found == object_.end()) return nullptr;
      next_ = found;
    }
    return &*next_++;
  }

 private:
  const nlohmann::ordered_json& object_;
  nlohmann::ordered_json::const_iterator next_;
};

}  // namespace convoy::data
