#pragma once

#include <random>
#include <vector>

#include "tutti/engine/engine.h"

namespace tutti::chaos {

/// Bytes of one rank for one call, in private or symmetric memory.
class Buffer {
 public:
  Buffer(engine::Engine& engine, std::size_t bytes, bool symmetric);
  ~Buffer();
  Buffer(const Buffer&) = delete;

  engine::Block block() const { return {data_, bytes_}; }

 private:
  std::shared_ptr<engine::Reach> reach_;
  std::vector<std::byte> private_;
  std::byte* data_;
  std::size_t bytes_;
};

/// What a random call is about: the same on every rank that draws it from the same generator.
struct Draw {
  engine::Op op;
  kernels::DType dtype;
  kernels::ReduceOp reduce;
  Rank root;
  std::size_t count;  ///< elements of one block
  bool symmetric;
};

Draw draw(std::mt19937& random, int ranks, std::size_t most_bytes);

/// The call of one rank, on buffers that live as long as this.
class RandomCall {
 public:
  RandomCall(engine::Engine& engine, const Draw& draw);

  const engine::Call& call() const { return call_; }
  /// Whether every byte is what it must be after a successful run. Inputs are small whole numbers, so sums are exact.
  bool right(const engine::Engine& engine) const;

 private:
  int expected(const engine::Engine& engine, std::size_t block) const;

  Draw draw_;
  engine::Call call_;
  Buffer in_;
  Buffer out_;
};

}  // namespace tutti::chaos
