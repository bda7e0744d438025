#include "train/failure.h"

#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tutti/base/deadline.h"
#include "tutti/comm/exception.h"

namespace tutti::train {
namespace {

constexpr std::chrono::milliseconds kPause{5};

/// LibTorch's messages go on with what only its authors can use.
Error from_torch(std::string_view what) {
  if (what.find("can't allocate memory") != what.npos || what.find("not enough memory") != what.npos) {
    return {Code::resource_exhausted,
            "there is not enough memory; a smaller model needs less, and so does a training with a smaller "
            "--batch-tokens or a larger --accumulation"};
  }
  return {Code::system, std::string(what.substr(0, what.find('\n')))};
}

bool blames_another(const World& world, const Error& error) {
  return (error.code == Code::peer_lost || error.code == Code::aborted) && error.rank && error.rank != world.rank();
}

/// How many ranks have failed alike, when all have or the time is over.
std::int64_t wait_for_others(c10d::Store& store, const std::string& key, int ranks, Deadline deadline) {
  auto failed = store.add(key, 0);
  while (failed < ranks && !deadline.expired()) {
    std::this_thread::sleep_for(kPause);
    failed = store.add(key, 0);
  }
  return failed;
}

std::optional<std::string> agreed(const World& world, const Error& error, std::chrono::milliseconds patience) {
  const auto store = world.store();
  const auto key = fmt::format("train/failed/{:x}", std::hash<std::string>()(error.message));
  if (store->add(key, 1) > 1) {
    return std::nullopt;  // said by another
  }
  const auto failed = wait_for_others(*store, key, world.size(), Deadline::after(patience));
  if (failed == world.size()) {
    return error.message;
  }
  const auto more = failed > 1 ? fmt::format(" and {} more", failed - 1) : "";
  return fmt::format("rank {}{}: {}", to_int(world.rank()), more, error.message);
}

}  // namespace

Error caught_error() {
  try {
    throw;
  } catch (const Exception& error) {
    return error.error();
  } catch (const c10::Error& error) {
    return from_torch(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return from_torch("not enough memory");
  } catch (const std::exception& error) {
    return from_torch(error.what());
  }
}

std::optional<std::string> failure_to_say(const World& world, const Error& error, std::chrono::milliseconds patience) {
  if (world.size() == 1) {
    return error.message;
  }
  if (blames_another(world, error)) {
    return std::nullopt;
  }
  try {
    return agreed(world, error, patience);
  } catch (const std::exception&) {  // the store is gone, too
    return fmt::format("rank {}: {}", to_int(world.rank()), error.message);
  }
}

}  // namespace tutti::train
