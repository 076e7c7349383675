// SPDX-License-Identifier: Apache-2.0
//
// Parameters of one type, laid one after another in one flat tensor, so that one collective sends
// all of them. The flat tensor is cut into as many equal pieces as there are ranks: a parameter may
// lie in several pieces.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/model/nn/deferred_values.h"
#include "convoy/model/nn/named_tensor.h"

namespace convoy::parallel {

// The position of a parameter in the flat tensor.
struct FlatRange {
  nn::NamedTensor parameter;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // its first element in the flat tensor
  int64_t numel = 0;
};

// The part of a parameter that lies in one rank's piece.
struct PieceOfParameter {
  size_t range = 0;  // index into ranges()
  int64_t begin_in_parameter = 0;
  int64_t begin_in_piece = 0;
  int64_t numel = 0;
};

class FlatParameters {
 public:
  // Takes the parameters over: from here on each of them is a view of whole(), which has no memory
  // yet. All parameters have one type and lie on one device. `num_pieces`: number of ranks that
  // share them. `values`: the values of parameters that have no memory; null: all have memory.
  FlatParameters(std::vector<nn::NamedTensor> parameters, int num_pieces,
                 const nn::DeferredValues* values);

  const std::vector<FlatRange>& ranges() const { return ranges_; }
  std::vector<PieceOfParameter> parts_of_piece(int piece) const;
  int64_t numel() const { return piece_numel_ * num_pieces_; }  // padding included
  int64_t piece_numel() const { return piece_numel_; }

  device::RefillableTensor& whole() { return whole_; }
  // Give and take the memory of whole(), and so of the parameters. They throw ConfigError naming a
  // parameter that was given other memory since.
  void take_memory();
  void release_memory();
  // From here on a parameter that is used while it has no values throws a c10::Error with the text
  // of `error`. A parameter has no values while it has no memory, and from hide() until show();
  // these two keep the memory. Parameters are hidden at first.
  void withhold(const std::function<std::string(const std::string& name)>& error);
  void show() { lay_over(/*memory=*/true); }
  void hide() { lay_over(/*memory=*/false); }
  // Gives whole() memory and the values that the parameters had.
  void fill_whole();
  // The values of one piece: [piece_numel()], in memory of its own.
  at::Tensor filled_piece(int piece) const;
  // Frees the values that the parameters had when they were taken over. They are no longer needed.
  void forget_values();
  at::Tensor piece_of_whole(int piece) const {
    return whole_.flat().narrow(0, piece * piece_numel_, piece_numel_);
  }

 private:
  int num_pieces_;
  int64_t piece_numel_ = 0;
  void lay_over(bool memory);
  // Copies elements of a parameter, from `begin` on, as they were when it was taken over, into
  // `out`.
  void read(size_t range, int64_t begin, const at::Tensor& out) const;

  std::vector<FlatRange> ranges_;
  std::vector<at::Tensor> values_;  // by range, flat; only ranges that had memory
  const nn::DeferredValues* deferred_;
  device::RefillableTensor whole_;
  std::vector<at::Storage> withheld_;  // by range; empty: withhold() was not called
};

}  // namespace convoy::parallel
