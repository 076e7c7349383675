// SPDX-License-Identifier: Apache-2.0
//
// Finds the LibTorch for convoy-worker without loading it. Search order: CONVOY_TORCH,
// .deps/site/torch beside the program's folder, the folder at build time, the installed Pythons.
// Only version 2.11 is accepted. When an NVIDIA driver is present, LibTorch with CUDA is preferred.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::apps {

struct LibtorchFolder {
  std::filesystem::path folder;  // holds lib/libtorch_cpu.so; empty when none was found
  std::string version;           // "2.11.0+cpu"
  // Rejected places: "/opt/torch: version 2.4.1".
  std::vector<std::string> looked_at;

  // "2.11.0, CPU only (/opt/torch)", "2.11.0, CUDA 13.0 (/opt/torch)", "not found".
  std::string text() const;
};

// CONVOY_TORCH, when set, is the only place searched. Reads only file names and version files.
LibtorchFolder find_libtorch(const std::filesystem::path& program);

// Facts about a library that a LibTorch with CUDA loads. Reading its version needs no GPU.
struct CudaLibraryFacts {
  std::string version;         // "2.28.9"; empty = none
  std::filesystem::path file;  // file with the version
  std::string why_none;        // "LibTorch is without CUDA"

  std::string text() const;  // "2.28.9 (/opt/.../libnccl.so.2)", "none (LibTorch is without CUDA)"
};

// `libtorch`: as LibtorchFolder::folder. Both functions open the library for a moment if it exists.
CudaLibraryFacts find_nccl(const std::filesystem::path& libtorch);   // for groups of GPUs
CudaLibraryFacts find_cudnn(const std::filesystem::path& libtorch);  // for convolutions

// The reason why find_libtorch()'s LibTorch cannot compute on GPUs: it has no CUDA, or the driver
// is missing or too old. Empty when it can, and when there is no LibTorch. Starts nothing on a GPU.
std::string why_no_cuda(const std::filesystem::path& program);

// LD_LIBRARY_PATH for the worker. Throws ConfigError that lists the places searched.
std::string libtorch_library_path(const std::filesystem::path& program);

}  // namespace convoy::apps
