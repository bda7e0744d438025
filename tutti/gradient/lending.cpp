#include "tutti/gradient/lending.h"

#include <mutex>
#include <unordered_map>

#include <c10/core/CPUAllocator.h>

#include "tutti/gradient/foresight.h"

namespace tutti::gradient {
namespace {

/// What is lent, by address. One for the process, as the allocator is: tensors know nothing else of where they are
/// from.
class Book {
 public:
  void add(const void* data, c10::Storage memory) {
    const std::lock_guard lock(mutex_);
    loans_.emplace(data, std::move(memory));
  }

  /// False: it is none of ours.
  bool remove(const void* data) {
    std::unordered_map<const void*, c10::Storage>::node_type loan;  // is gone when the lock is
    const std::lock_guard lock(mutex_);
    loan = loans_.extract(data);
    return !loan.empty();
  }

  bool has(const void* data) const {
    const std::lock_guard lock(mutex_);
    return loans_.contains(data);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, c10::Storage> loans_;
};

/// Tensors may outlive all that a program destroys at its end.
Book& book() {
  static auto& one = *new Book;
  return one;
}

void give_back(void* data) { book().remove(data); }

thread_local std::weak_ptr<Lender> lender_here;

/// Stands before the usual allocator of CPU tensors.
class LendingAllocator final : public c10::Allocator {
 public:
  explicit LendingAllocator(c10::Allocator& usual) : usual_(usual) { usual_deleter_ = usual.raw_deleter(); }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes >= Foresight::kSmallest) {
      if (const auto lender = lender_here.lock()) {
        return lender->place(bytes, usual_);
      }
    }
    return usual_.allocate(bytes);
  }

  /// Of what was asked for as bare memory.
  c10::DeleterFnPtr raw_deleter() const override { return usual_deleter_ == nullptr ? nullptr : &delete_raw; }

  bool is_simple_data_ptr(const c10::DataPtr& data) const override { return usual_.is_simple_data_ptr(data); }

  void copy_data(void* to, const void* from, std::size_t bytes) const override { usual_.copy_data(to, from, bytes); }

 private:
  static void delete_raw(void* data) {
    if (!book().remove(data)) {
      usual_deleter_(data);
    }
  }

  c10::Allocator& usual_;
  static inline c10::DeleterFnPtr usual_deleter_ = nullptr;
};

}  // namespace

void prepare_lending() {
  static const bool kOnce = [] {
    static auto& allocator = *new LendingAllocator(*c10::GetCPUAllocator());  // for ever, as allocators are
    // With as little priority as will do, so that a program can still set another.
    for (unsigned priority = 0; priority < 256 && c10::GetCPUAllocator() != &allocator; ++priority) {
      c10::SetCPUAllocator(&allocator, static_cast<std::uint8_t>(priority));
    }
    return true;
  }();
  static_cast<void>(kOnce);
}

void start_lending(std::weak_ptr<Lender> lender) { lender_here = std::move(lender); }

void stop_lending() noexcept { lender_here.reset(); }

c10::DataPtr lend(const at::Tensor& tensor) {
  auto* const data = tensor.mutable_data_ptr();
  book().add(data, tensor.storage());
  // Itself is its context: so it is with what allocators give that also give bare memory.
  return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
}

bool is_lent(const at::Tensor& tensor) { return book().has(tensor.const_data_ptr()); }

}  // namespace tutti::gradient
