#include "tutti/plan/builder.h"

#include <algorithm>

namespace tutti::plan {

Builder::Builder(const Shape& shape, Rank me) : shape_(shape), me_(me) {}

Span Builder::block_of(Buffer buffer, std::size_t block) const {
  return {buffer, static_cast<std::uint32_t>(block) * shape_.pieces, shape_.pieces};
}

Span Builder::scratch(std::uint32_t pieces) {
  const Span span{Buffer::scratch, program_.scratch_pieces, pieces};
  program_.scratch_pieces += pieces;
  scratch_like_.resize(program_.scratch_pieces, 0);
  return span;
}

std::uint32_t Builder::like_of(Span span) const {
  return (span.buffer == Buffer::scratch ? scratch_like_[span.begin] : span.begin) % shape_.pieces;
}

void Builder::set_like(Span span, std::uint32_t like) {
  if (span.buffer == Buffer::scratch) {
    for (std::uint32_t i = 0; i < span.count; ++i) {
      scratch_like_[span.begin + i] = (like + i) % shape_.pieces;
    }
  }
}

void Builder::begin(Step::Kind kind, Rank peer, Span span) {
  require(peer != me_, "a rank does not talk to itself");
  step_ = {.kind = kind,
           .peer = peer,
           .span = span,
           .sources = {static_cast<std::uint32_t>(program_.sources.size()), 0},
           .after = {static_cast<std::uint32_t>(program_.after.size()), 0}};
}

void Builder::reads(Span span) {
  const auto place = in_place(shape_, me_, span);
  auto& uses = uses_of(place.buffer);
  uses.resize(std::max<std::size_t>(uses.size(), place.end()));
  const auto me = static_cast<std::uint32_t>(program_.steps.size());
  for (auto piece = place.begin; piece < place.end(); ++piece) {
    if (uses[piece].writer) {
      program_.after.push_back(*uses[piece].writer);
    }
    if (uses[piece].readers.empty() || uses[piece].readers.back() != me) {
      uses[piece].readers.push_back(me);
    }
  }
}

void Builder::writes(Span span) {
  const auto place = in_place(shape_, me_, span);
  auto& uses = uses_of(place.buffer);
  uses.resize(std::max<std::size_t>(uses.size(), place.end()));
  const auto me = static_cast<std::uint32_t>(program_.steps.size());
  for (auto piece = place.begin; piece < place.end(); ++piece) {
    auto& use = uses[piece];
    if (use.readers.empty() && use.writer) {
      program_.after.push_back(*use.writer);  // those that read it waited for it already
    }
    std::copy_if(use.readers.begin(), use.readers.end(), std::back_inserter(program_.after),
                 [me](std::uint32_t reader) { return reader != me; });
    use = {.writer = me, .readers = {}};
  }
}

void Builder::finish() {
  const auto first = program_.after.begin() + step_.after.begin;
  std::sort(first, program_.after.end());
  program_.after.erase(std::unique(first, program_.after.end()), program_.after.end());
  step_.after.count = static_cast<std::uint32_t>(program_.after.size()) - step_.after.begin;
  step_.like = like_of(step_.span);
  step_.sources.count = static_cast<std::uint32_t>(program_.sources.size()) - step_.sources.begin;
  program_.steps.push_back(step_);
}

void Builder::send(Rank to, Span span) {
  begin(Step::Kind::send, to, span);
  reads(span);
  finish();
}

void Builder::receive(Rank from, Span span, Span like) {
  require(span.count == like.count, "what is received has the length of what it is like");
  begin(Step::Kind::receive, from, span);
  set_like(span, like_of(like));
  writes(span);
  finish();
}

void Builder::combine(Span to, std::span<const Span> sources) {
  begin(Step::Kind::combine, Rank{-1}, to);
  for (const auto& source : sources) {
    require(source.count == to.count, "what is combined has one length");
    program_.sources.push_back(source);
    reads(source);
  }
  set_like(to, like_of(sources[0]));
  writes(to);
  finish();
}

void Builder::copy(Span to, Span from) {
  if (to != from) {
    combine(to, {from});
  }
}

}  // namespace tutti::plan
