// SPDX-License-Identifier: Apache-2.0
//
// The fields of requests, and what is wrong with them. Fields that the server cannot serve are
// refused by name, never ignored. Plain data.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/apps/serving/json_answer.h"

namespace convoy::serving {

Json parse_object(std::string_view body);  // Throws ApiError.

// Reads the fields of an object by name, and remembers which were read. Its functions throw
// ApiError.
class FieldReader {
 public:
  // `place`: place of the object in the request, such as "messages[0]"; empty: the object is the
  // request.
  explicit FieldReader(const Json& object, const std::string& place = {})
      : object_(object), prefix_(place.empty() ? "" : place + ".") {}

  // Null counts as absent, as in OpenAI's API.
  const Json* find(const std::string& name);
  int64_t integer(const std::string& name, int64_t absent, int64_t least, int64_t most);
  double number(const std::string& name, double absent, double least, double most);
  bool flag(const std::string& name, bool absent = false);
  std::string text(const std::string& name);
  const Json* object(const std::string& name);  // null when absent
  // Throws unless the field is absent or has one of the values `neutral`, which change nothing.
  void require_neutral(const std::string& name, const std::vector<Json>& neutral);
  void require_nothing_else() const;
  // `field`: its full name in the request.
  [[noreturn]] static void refuse(const std::string& field, const std::string& wanted,
                                  const Json& found);

 private:
  const Json& object_;
  std::string prefix_;
  std::set<std::string> known_;
};

}  // namespace convoy::serving
