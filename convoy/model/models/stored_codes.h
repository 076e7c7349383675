// SPDX-License-Identifier: Apache-2.0
//
// A coded weight under the keys of bitsandbytes' state dict: NAME.absmax, NAME.quant_map,
// NAME.quant_state.bitsandbytes__nf4, ...; for 8 bits MODULE.SCB and MODULE.weight_format.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

namespace convoy::models {

using FindTensor = std::function<const io::TensorView*(const std::string& name)>;

// The entries of a file for one coded weight. Its views point into the file.
class StoredCodes {
 public:
  // Nothing if `weight` is stored as numbers, or not at all. Throws DataError if a part of it is
  // missing, or the parts do not fit together. `place`: the file's name, for errors.
  static std::optional<StoredCodes> find(const std::string& weight, const FindTensor& find,
                                         const std::string& place);

  const kernels::BitsandbytesFormat& format() const { return format_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  at::ScalarType dtype() const { return dtype_; }  // type of the original weight
  // Names of the entries in the file that belong to the weight, besides its own name.
  const std::vector<std::string>& keys() const { return keys_; }

  kernels::BitsandbytesWeight read() const;
  const at::Tensor& nested_table() const { return nested_table_; }
  // Reads elements of a part (BitsandbytesWeight::Part) from `begin` on into `out`, a flat tensor,
  // until it is full.
  void read_part(const std::string& suffix, int64_t begin, const at::Tensor& out) const;

 private:
  StoredCodes() = default;

  kernels::BitsandbytesFormat format_;
  std::vector<int64_t> shape_;
  at::ScalarType dtype_ = at::kFloat;
  std::vector<std::string> keys_;
  std::map<std::string, io::TensorView> parts_;  // by suffix; all parts but the offset
  at::Tensor nested_offset_;
  at::Tensor nested_table_;
  friend class StoredCodesReader;
};

// The tensors written for a coded weight beside its codes.
std::vector<io::TensorSource> sources_beside_codes(const std::string& name,
                                                   const kernels::BitsandbytesWeight& weight);

}  // namespace convoy::models
