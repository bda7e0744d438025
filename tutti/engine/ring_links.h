#pragma once

#include <deque>

#include "tutti/engine/hub.h"
#include "tutti/engine/links.h"

namespace tutti::engine {

/// Links between ranks that share memory: a ring of bytes for each ordered pair, in the hub.
class RingLinks final : public Links {
 public:
  explicit RingLinks(Hub& hub);

  void send(Rank to, ConstBlock bytes, std::uint32_t number) override;
  void receive(Rank from, Block bytes, std::uint32_t number) override;
  Status advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) override;
  const std::vector<Sent>& sent() const override { return sent_; }

  /// What `advance` is made of, for who waits for more than these. Whether anything moved.
  bool move(std::vector<std::uint32_t>& over);
  /// Who has to do something before what was begun can be over.
  std::vector<Rank> awaited() const;
  void forget();

 private:
  template <class BlockType>
  struct Message {
    BlockType rest;  // what is still to be moved
    std::uint32_t number;
  };

  Hub& hub_;
  std::vector<std::deque<Message<ConstBlock>>> sends_;  // by peer
  std::vector<std::deque<Message<Block>>> receives_;
  std::vector<Sent> sent_;
};

}  // namespace tutti::engine
