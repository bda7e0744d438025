#include "tutti/gradient/use_watch.h"

#include <mutex>
#include <unordered_map>

#include <ATen/record_function.h>

namespace tutti::gradient {
namespace {

/// All that is watched, by anybody in this process. LibTorch tells of operators while there is something.
class Watched {
 public:
  static Watched& all() {
    static auto* const watched = new Watched;  // outlives every thread
    return *watched;
  }

  void add(const c10::StorageImpl* storage, const std::weak_ptr<UseListener>& listener) {
    const std::lock_guard lock(mutex_);
    if (listeners_.empty()) {
      handle_ = at::addGlobalCallback(
          at::RecordFunctionCallback(&Watched::operator_begins).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    }
    auto& entry = listeners_[storage];
    entry.listener = listener;
    ++entry.times;
  }

  void remove(const c10::StorageImpl* storage) {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(storage);
    if (found == listeners_.end() || --found->second.times > 0) {
      return;
    }
    listeners_.erase(found);
    if (listeners_.empty()) {
      at::removeCallback(handle_);
    }
  }

 private:
  struct Entry {
    std::weak_ptr<UseListener> listener;
    int times = 0;  // it is watched: several tensors may lie there
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
    if (const auto listener = find(storage)) {
      const at::DisableRecordFunctionGuard unseen;
      listener->about_to_be_used(storage);
    }
  }

  std::shared_ptr<UseListener> find(const c10::StorageImpl* storage) {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(storage);
    return found == listeners_.end() ? nullptr : found->second.listener.lock();
  }

  std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, Entry> listeners_;
  at::CallbackHandle handle_ = 0;
};

}  // namespace

void watch_use(const at::Tensor& tensor, const std::weak_ptr<UseListener>& listener) {
  Watched::all().add(tensor.storage().unsafeGetStorageImpl(), listener);
}

void stop_watching(const at::Tensor& tensor) { Watched::all().remove(tensor.storage().unsafeGetStorageImpl()); }

}  // namespace tutti::gradient
