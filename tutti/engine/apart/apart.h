#pragma once

#include <memory>
#include <string>

#include "tutti/base/rank.h"
#include "tutti/engine/engine.h"
#include "tutti/rendezvous/store.h"

namespace tutti::engine {

/// The engine of a group whose ranks share no memory: it can meet at a barrier, over the store, and nothing else.
/// It stands where MPI would, so that such a group can be named, split and waited for. `why` there is no MPI is part of
/// its errors.
std::unique_ptr<Engine> make_apart_engine(std::shared_ptr<rendezvous::Store> store, const std::string& group, Rank rank,
                                          int ranks, const std::string& why = "no engine between hosts is there");

}  // namespace tutti::engine
