#include "tutti/gradient/lending.h"

#include <mutex>
#include <unordered_map>

#include <c10/core/CPUAllocator.h>

#include "tutti/gradient/foresight.h"

namespace tutti::gradient {
namespace {

/// What is lent, by address.
class Book {
 public:
  void add(void* data, c10::Storage memory) {
    const std::lock_guard lock(mutex_);
    loans_.emplace(data, std::move(memory));
  }

  /// False: it is none of ours.
  bool remove(void* data) {
    std::unordered_map<void*, c10::Storage>::node_type loan;  // is gone when the lock is
    const std::lock_guard lock(mutex_);
    loan = loans_.extract(data);
    return !loan.empty();
  }

  bool has(void* data) const {
    const std::lock_guard lock(mutex_);
    return loans_.contains(data);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, c10::Storage> loans_;
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

void install() {
  static const bool kOnce = [] {
    constexpr std::uint8_t kPriority = 255;  // it hands on what it does not want itself
    static auto& allocator = *new LendingAllocator(*c10::GetCPUAllocator());  // for ever, as allocators are
    c10::SetCPUAllocator(&allocator, kPriority);
    return true;
  }();
  static_cast<void>(kOnce);
}

}  // namespace

void start_lending(std::weak_ptr<Lender> lender) {
  install();
  lender_here = std::move(lender);
}

void stop_lending() noexcept { lender_here.reset(); }

c10::DataPtr lend(const at::Tensor& tensor) {
  auto* const data = tensor.mutable_data_ptr();
  book().add(data, tensor.storage());
  // Itself is its context: so it is with what allocators give that also give bare memory.
  return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
}

bool is_lent(const at::Tensor& tensor) { return book().has(tensor.mutable_data_ptr()); }

}  // namespace tutti::gradient
