// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy train` that the multi-GPU activity-recognition guide has: settings under the
// names that its scripts give them. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::settings {

// Each member holds the value of one setting; empty = not given.
struct HarFlags {
  std::string multi_gpu;
  std::string local_rank;
  std::string mode;
  std::string data_dir;
  std::string encoder_path;
  std::string epochs;
  std::string batch_size;
  std::string lr;
  std::string weight_decay;
  std::string warmup_epochs;
  bool freeze_encoder = false;
  bool no_freeze_encoder = false;
  std::vector<int64_t> hidden_dims;
  std::string dropout;
  std::string grad_accum_steps;
  std::string max_grad_norm;
  bool amp = true;
  std::string num_workers;
  std::string early_stopping_patience;
  std::string save_dir;
  std::string log_interval;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("multi_gpu", multi_gpu,
          "ddp: one rank per GPU, or --ranks; dp: one process with a replica per GPU, or "
          "parallel.replicas; none: one rank")
        .one_of({"", "none", "ddp", "dp"});
    visit("local_rank", local_rank, "accepted and ignored: the launcher sets the ranks").hidden();
    visit("mode", mode, "classify.pooling: flatten, average, first or joint");
    visit("data_dir", data_dir, "classify.data_dir");
    visit("encoder_path", encoder_path, "classify.encoder_path");
    visit("epochs", epochs, "train.epochs");
    visit("batch_size", batch_size, "train.batch_size, per device");
    visit("lr", lr, "train.learning_rate");
    visit("weight_decay", weight_decay, "train.weight_decay");
    visit("warmup_epochs", warmup_epochs, "train.warmup_epochs");
    visit("freeze_encoder", freeze_encoder, "classify.freeze_encoder=true");
    visit("no_freeze_encoder", no_freeze_encoder, "classify.freeze_encoder=false");
    visit("hidden_dims", hidden_dims, "classify.hidden_dims");
    visit("dropout", dropout, "classify.dropout");
    visit("grad_accum_steps", grad_accum_steps, "train.grad_accum");
    visit("max_grad_norm", max_grad_norm, "train.max_grad_norm");
    visit("amp", amp, "train.bf16 as configured; --no-amp: train.bf16=false");
    visit("num_workers", num_workers, "classify.num_workers, per device");
    visit("early_stopping_patience", early_stopping_patience, "train.early_stopping_patience");
    visit("save_dir", save_dir, "train.output_dir; TensorBoard files go to its folder logs");
    visit("log_interval", log_interval, "train.logging_steps");
  }

  // As `key=value` words, in the order of the list.
  std::vector<std::string> settings() const;
};

}  // namespace convoy::settings
