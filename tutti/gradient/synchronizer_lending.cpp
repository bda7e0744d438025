// How a synchronizer lends its buckets' memory to backward, and gets it back.

#include <c10/core/impl/COW.h>

#include "tutti/gradient/synchronizer.h"

namespace tutti::gradient {
namespace {

/// Whether its memory is free once this one is gone, and what it is a view of.
bool is_last(const at::Tensor& tensor) {
  const auto users = tensor.storage().use_count();
  return !c10::impl::cow::is_cow_data_ptr(tensor.storage().data_ptr()) && tensor.use_count() == 1 &&
         (users == 1 || (users == 2 && tensor.is_view() && tensor._base().use_count() == 1));
}

}  // namespace

/// Where a gradient is to lie, nobody else's tensor may: none but `incoming`, which autograd drops next. Gives whether
/// it still lies where it did.
bool Synchronizer::reclaim(std::size_t index, const at::Tensor& incoming) {
  const auto& place = view(index);
  auto& bucket = buckets_[parameters_[index].bucket];
  if (place.nbytes() < Foresight::kSmallest || !is_lent(place) ||
      (incoming.defined() && bucket.has(parameters_[index].slot, incoming) && is_last(incoming))) {
    return true;
  }
  foresight_.mistaken(index);
  bucket.move(group_);
  return false;
}

c10::DataPtr Synchronizer::place(std::size_t bytes, c10::Allocator& usual) {
  const std::lock_guard lock(mutex_);
  if (pass_ != Pass::synchronizing) {
    return usual.allocate(bytes);
  }
  const auto index = foresight_.asked(bytes);
  // Nor may anybody else have the gradient that lies there from the last pass: it may be what this one is computed
  // from.
  const auto is_free = [&](const Parameter& parameter) {
    return parameter.arrivals == 0 && view(*index).use_count() == 1 && !buckets_[parameter.bucket].moved &&
           parameter.expected == 1 && !tensor(*index).grad().defined() &&
           buckets_[parameter.bucket].state == BucketState::filling && !is_lent(view(*index));
  };
  auto data = index && is_free(parameters_[*index]) ? lend(view(*index)) : usual.allocate(bytes);
  foresight_.given(data.get());
  return data;
}

}  // namespace tutti::gradient
