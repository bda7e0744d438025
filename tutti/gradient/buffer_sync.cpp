#include "tutti/gradient/buffer_sync.h"

#include <limits>
#include <numeric>

#include <c10/core/GradMode.h>

#include "tutti/gradient/hook.h"

namespace tutti::gradient {

BufferSync::BufferSync(std::vector<NamedTensor> buffers, Buffers policy, const Group& group)
    : buffers_(policy == Buffers::leave ? std::vector<NamedTensor>() : std::move(buffers)),
      group_(group),
      policy_(policy) {
  constexpr auto kNoLimit = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), 0);
  for (const auto& layout : lay_out(sizes_of(buffers_), order, {.first = kNoLimit, .others = kNoLimit})) {
    buckets_.emplace_back(layout, buffers_, group_);
  }
}

void BufferSync::start(Rank from) {
  for (auto& bucket : buckets_) {
    if (bucket.work) {
      continue;  // sent by a backward that failed, whose place this one takes
    }
    for (std::size_t i = 0; i < bucket.views.size(); ++i) {
      put(bucket.views[i], bucket.parameters[i]);
    }
    const bool averaged =
        policy_ == Buffers::average && (bucket.memory.is_floating_point() || bucket.memory.is_complex());
    bucket.work = averaged ? all_reduce(bucket.memory, {ReduceOp::avg}, group_) : group_.broadcast(bucket.memory, from);
  }
}

void BufferSync::finish() {
  const c10::NoGradGuard no_grad;
  for (auto& bucket : buckets_) {
    bucket.work->wait();
    bucket.work.reset();
    for (std::size_t i = 0; i < bucket.views.size(); ++i) {
      put(bucket.parameters[i], bucket.views[i]);
    }
  }
}

}  // namespace tutti::gradient
