#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

#include "tutti/rendezvous/store.h"

namespace tutti {

/// The job's store as everything in c10d knows it. Any thread; a wait holds up nobody else. Failures are
/// c10::DistStoreError, an empty queue c10::DistQueueEmptyError, as with c10d's own stores.
class C10dStore final : public c10d::Store {
 public:
  explicit C10dStore(std::shared_ptr<rendezvous::Store> store,
                     std::chrono::milliseconds timeout = c10d::Store::kDefaultTimeout);

  c10::intrusive_ptr<c10d::Store> clone() override;

  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<uint8_t>>& values) override;
  bool hasExtendedApi() const override { return true; }
  void queuePush(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> queuePop(const std::string& key, bool block) override;
  int64_t queueLen(const std::string& key) override;
  std::vector<std::string> listKeys() override;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13  // c10d's own; before, a function of ours
  void barrier(const std::string& key, int64_t world_size, const std::chrono::milliseconds& timeout) override;
#else
  void barrier(const std::string& key, int64_t world_size, const std::chrono::milliseconds& timeout);
#endif

 private:
  rendezvous::Reply call(const rendezvous::Request& request, Deadline deadline);
  rendezvous::Reply call(const rendezvous::Request& request) {
    return call(request, Deadline::after_or_never(timeout_));
  }

  std::shared_ptr<rendezvous::Store> store_;
};

/// The way back: any c10d store (TCPStore, FileStore, ...) as ours, for groups that are made from c10d's side.
/// Serves set, get, wait, add, erase, check and barrier; the rest is refused.
std::shared_ptr<rendezvous::Store> from_c10d(c10::intrusive_ptr<c10d::Store> store);

}  // namespace tutti
