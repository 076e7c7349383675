// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/open_descriptors.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "convoy/core/base/text_as.h"

namespace convoy::processes {
namespace {

bool close_range_all_but(int kept) {
  const auto number = static_cast<unsigned>(kept);
  return (number == 0 || ::close_range(0, number - 1, 0) == 0) &&
         ::close_range(number + 1, ~0U, 0) == 0;
}

// The numbers are collected first: the folder is read through a descriptor of its own, which ends
// with this function.
std::vector<int> listed_descriptors() {
  std::vector<int> numbers;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", failure), end;
       !failure && entry != end; entry.increment(failure))
    if (const auto number = text_as<int>(entry->path().filename().string()))
      numbers.push_back(*number);
  if (!numbers.empty() && !failure) return numbers;
  const long most = ::sysconf(_SC_OPEN_MAX);  // no /proc
  for (long number = 0; number < most; ++number) numbers.push_back(static_cast<int>(number));
  return numbers;
}

}  // namespace

void close_all_but(int kept) {
  if (close_range_all_but(kept)) return;
  for (const int number : listed_descriptors())
    if (number != kept) ::close(number);
}

}  // namespace convoy::processes
