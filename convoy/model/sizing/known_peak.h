// SPDX-License-Identifier: Apache-2.0
//
// The most operations per second that products of matrices reached in measurements on this machine,
// kept for the user. Trainings are compared with it. `convoy bench peak` measures it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::sizing {

// The peak rates of one GPU, or of all the CPUs of a host that this process may use.
struct PeakOwner {
  std::string host = {};
  std::string device = "cpu";  // or "cuda"
  std::string name = {};       // the CPU's name; empty = unknown
  int cpus = 0;                // if the device is "cpu"
  std::string dtype = "bf16";

  bool operator==(const PeakOwner&) const = default;
};

// The peak of this host in its present state.
PeakOwner peak_owner(const std::string& device, const std::string& dtype);

// $XDG_CACHE_HOME/convoy/peaks.json, or in ~/.cache; empty where neither is known.
std::filesystem::path peaks_file();

// FLOP/s; nothing where it was not measured, or the file cannot be read.
std::optional<double> known_peak(const std::filesystem::path& file, const PeakOwner& owner);

// Stores a peak unless a higher one is stored: other work on the machine can only lower a
// measurement. Throws IoError.
void remember_peak(const std::filesystem::path& file, const PeakOwner& owner, double flops);

}  // namespace convoy::sizing
