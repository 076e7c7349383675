// SPDX-License-Identifier: Apache-2.0
//
// One workload that Convoy computes itself: its name, help texts, flags and functions. To add a
// workload, write a folder with its Workload, its flags and a function that returns its
// WorkloadKind, and add one line in registry.cpp. `ball/` is the smallest example.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field_list.h"
#include "convoy/core/config/flags.h"
#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/csv_text.h"
#include "convoy/farm/sweep/runner/plan_cost.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// The folders and devices that a sweep's flags name.
struct SweepPlaces {
  std::string checkpoint_dir;          // folder of the store; empty = the results' folder
  std::string figures_dir;             // empty = no figures
  std::string compute_device = "cpu";  // see sweep::RunOptions
  int64_t max_gpus = -1;
};

// The flags of `convoy sweep NAME`, and the cells that they describe.
class WorkloadFlags {
 public:
  virtual ~WorkloadFlags() = default;

  virtual config::Section section() = 0;  // the flags as config fields
  // File that is read before the command line; empty = none.
  virtual std::string config_file() const = 0;
  virtual void start_over() = 0;  // resets the flags to the defaults, or to a preset that was named
  // Throws ConfigError, which names the flag, and DataError.
  virtual sweep::SweepPlan plan() const = 0;
  virtual SweepPlaces places() const = 0;
  // The tables that are written at the end. A table's file name has a mark of the sweep
  // (SweepPlan::file_mark) before the ending. A rerun gives the same names.
  virtual std::vector<sweep::NamedFile> tables(const sweep::SweepResults& results) const = 0;
  // One line per given flag that has no meaning any more or is only partly used.
  virtual std::vector<std::string> notices() const { return {}; }
  // Warnings about settings whose result is likely to surprise the user.
  virtual std::vector<std::string> warnings() const { return {}; }
  // The flag whose value may be left out; empty = none.
  virtual std::string flag_without_value() const { return ""; }
};

struct WorkloadKind {
  std::string_view name;                      // name of the sub-command, also in stores
  std::string_view summary;                   // one line in `convoy sweep --help`
  std::string_view usage;                     // text "convoy sweep NAME [flags]"
  std::string_view example;                   // an example command line
  std::vector<std::string_view> first_flags;  // at most twelve flags that --help shows
  std::unique_ptr<WorkloadFlags> (*flags)();
  config::Section (*fields)();  // the flags with their default values
  // `mode`: "exact" or "fast" if the workload has both modes, else "". `gpu`: the GPU that computes
  // if the workload can use one; null = the CPU computes.
  std::unique_ptr<sweep::Workload> (*make)(const std::string& mode,
                                           std::shared_ptr<cuda::Device> gpu);
  // Makes further tables from results in a store, in addition to the tables that every sweep has;
  // null = none.
  std::vector<sweep::NamedFile> (*wide_csv)(const sweep::SweepResults& results) = nullptr;
  sweep::DescentSteps steps = {};  // number of steps of its descents
};

// An implementation of WorkloadKind::fields.
template <class Flags>
config::Section default_fields() {
  static Flags defaults;
  return config::list_fields(defaults);
}

// The flags of most workloads. `Flags` has fields(), config, checkpoint_dir and figures_dir.
template <class Flags>
class WorkloadFlagsOf : public WorkloadFlags {
 public:
  config::Section section() override { return config::list_fields(flags_); }
  std::string config_file() const override { return flags_.config; }
  void start_over() override { flags_ = {}; }
  SweepPlaces places() const override {
    return {.checkpoint_dir = flags_.checkpoint_dir, .figures_dir = flags_.figures_dir};
  }

 protected:
  Flags flags_;
};

}  // namespace convoy::experiments
