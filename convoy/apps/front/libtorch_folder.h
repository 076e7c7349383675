// SPDX-License-Identifier: Apache-2.0
//
// The LibTorch that convoy-worker loads, looked for without loading it: CONVOY_TORCH,
// .deps/site/torch beside the program's folder, where this was built, then the installed Pythons.
// Only version 2.11 will do. Where an NVIDIA driver is, the first with a CUDA half goes before
// those without one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::apps {

struct LibtorchFolder {
  std::filesystem::path folder;        // holds lib/libtorch_cpu.so; empty when none was found
  std::string version;                 // "2.11.0+cpu"
  std::vector<std::string> looked_at;  // what was passed over: "/opt/torch: version 2.4.1"

  // "2.11.0, CPU only (/opt/torch)", "2.11.0, CUDA 13.0 (/opt/torch)", "not found".
  std::string text() const;
};

// CONVOY_TORCH, when set, is the only place. Reads file names and version files only.
LibtorchFolder find_libtorch(const std::filesystem::path& program);

// The NCCL that a LibTorch loads for groups of GPUs, asked without a GPU.
struct NcclLibraryFacts {
  std::string version;         // "2.28.9"; empty = none
  std::filesystem::path file;  // of the version
  std::string why_none;        // "LibTorch is without CUDA"

  std::string text() const;  // "2.28.9 (/opt/.../libnccl.so.2)", "none (LibTorch is without CUDA)"
};

// `libtorch`: as LibtorchFolder::folder. Opens NCCL for a moment where there is one.
NcclLibraryFacts find_nccl(const std::filesystem::path& libtorch);

// Why that LibTorch can not compute on GPUs; empty = it has its CUDA half. Looks for files only.
std::string why_no_cuda(const std::filesystem::path& program);

// LD_LIBRARY_PATH with which the worker finds it. Throws ConfigError naming what was looked at.
std::string libtorch_library_path(const std::filesystem::path& program);

}  // namespace convoy::apps
