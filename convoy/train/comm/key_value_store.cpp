// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/key_value_store.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/train/comm/control_store/control_store.h"

namespace convoy::comm {
namespace {

c10::intrusive_ptr<c10d::Store> open_store(const RankEnvironment& environment,
                                           std::chrono::milliseconds timeout) {
  if (!environment.store_address.empty())
    return c10::make_intrusive<ControlStore>(
        rendezvous::KeyValueOptions{.store = rendezvous::parse_endpoint(environment.store_address,
                                                                        0, "CONVOY_STORE_ADDRESS"),
                                    .run_id = environment.run_id,
                                    .attempt = environment.restart_count,
                                    .rank = environment.rank},
        rendezvous::JobToken::from_environment(environment.run_id), timeout);
  if (!environment.store_file.empty())
    return c10::make_intrusive<c10d::FileStore>(environment.store_file, environment.world);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !environment.agent_hosts_store;
  options.numWorkers = static_cast<size_t>(environment.world);
  options.waitWorkers = false;  // ranks may take any time until they meet
  options.multiTenant = true;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
}

}  // namespace

KeyValueStore::KeyValueStore(const RankEnvironment& environment,
                             std::chrono::milliseconds reach_timeout) {
  const auto store = open_store(environment, reach_timeout);
  store->setTimeout(reach_timeout);
  // Keys of an earlier attempt, or of another group of these ranks, must never be read.
  keys = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("convoy/{}/attempt_{}/group_{}", environment.run_id, environment.restart_count,
                  environment.group),
      store);
}

KeyValueStore::KeyValueStore() : keys(c10::make_intrusive<c10d::HashStore>()) {}

}  // namespace convoy::comm
