#include "tutti/gradient/use_watch.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <ATen/record_function.h>

namespace tutti::gradient {
namespace {

/// All that is watched, by anybody in this process. LibTorch tells of operators while there is something.
class Watched {
 public:
  static Watched& all() {
    static auto* watched = new Watched;  // outlives every thread
    return *watched;
  }

  void add(const c10::StorageImpl* storage, const std::shared_ptr<UseListener>& listener) {
    const std::lock_guard lock(mutex_);
    if (watchers_.empty()) {
      handle_ = at::addGlobalCallback(
          at::RecordFunctionCallback(&Watched::operator_begins).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    }
    watchers_[storage].push_back({listener.get(), listener});
  }

  void remove(const c10::StorageImpl* storage, const UseListener* listener) {
    const std::lock_guard lock(mutex_);
    const auto found = watchers_.find(storage);
    if (found == watchers_.end()) {
      return;
    }
    auto& all = found->second;
    const auto one = std::find_if(all.begin(), all.end(), [&](const Watcher& each) { return each.who == listener; });
    if (one != all.end()) {
      all.erase(one);
    }
    if (all.empty()) {
      watchers_.erase(found);
    }
    if (watchers_.empty()) {
      at::removeCallback(handle_);
    }
  }

 private:
  struct Watcher {
    const UseListener* who;
    std::weak_ptr<UseListener> listener;
  };

  static std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction& function) {
    for (const auto& input : function.inputs()) {
      all().look_at(input);
    }
    return nullptr;
  }

  void look_at(const c10::IValue& input) {
    if (input.isTensor()) {
      look_at(input.toTensor());
    } else if (input.isList()) {
      for (const c10::IValue& one : input.toListRef()) {
        look_at(one);
      }
    }
  }

  void look_at(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) {
      return;
    }
    const auto* const storage = tensor.storage().unsafeGetStorageImpl();
    for (const auto& listener : find(storage)) {
      const at::DisableRecordFunctionGuard unseen;
      listener->about_to_be_used(storage);
    }
  }

  std::vector<std::shared_ptr<UseListener>> find(const c10::StorageImpl* storage) {
    std::vector<std::shared_ptr<UseListener>> listeners;
    const std::lock_guard lock(mutex_);
    if (const auto found = watchers_.find(storage); found != watchers_.end()) {
      for (const auto& watcher : found->second) {
        if (auto listener = watcher.listener.lock()) {
          listeners.push_back(std::move(listener));
        }
      }
    }
    return listeners;
  }

  std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, std::vector<Watcher>> watchers_;
  at::CallbackHandle handle_ = 0;
};

}  // namespace

void watch_use(const c10::Storage& storage, const std::shared_ptr<UseListener>& listener) {
  Watched::all().add(storage.unsafeGetStorageImpl(), listener);
}

void stop_watching(const c10::Storage& storage, const UseListener* listener) {
  Watched::all().remove(storage.unsafeGetStorageImpl(), listener);
}

}  // namespace tutti::gradient
