#include "tutti/comm/backend.h"

#include <thread>

#include <fmt/format.h>

#include "tutti/comm/call_site.h"
#include "tutti/comm/exception.h"

namespace tutti {

/// What this process has made that may still run.
struct Backend::Made {
  const std::uint64_t process = process_generation();
  std::mutex mutex;
  std::vector<std::weak_ptr<Core>> cores;
};

/// Never destroyed: some backends go after everything else. A forked child begins with none.
Backend::Made& Backend::made() {
  static std::atomic<Made*> present{nullptr};
  auto* found = present.load();
  while (found == nullptr || found->process != process_generation()) {
    auto fresh = std::make_unique<Made>();
    if (present.compare_exchange_strong(found, fresh.get())) {
      return *fresh.release();
    }
  }
  return *found;
}

Backend::Backend(std::unique_ptr<engine::Engine> engine, BackendOptions options)
    : c10d::Backend(to_int(engine->rank()), engine->ranks()),
      process_(process_generation()),
      engine_name_(engine->name()),
      shape_(engine->shape().text()),
      can_round_sums_(engine->can(engine::Op::round_sums).ok()),
      options_(std::move(options)),
      reach_(engine->reach()),
      allocator_(reach_ ? std::make_shared<SymmetricAllocator>(reach_) : nullptr),
      core_(std::make_shared<Core>(std::move(engine))),
      progress_(&core_->progress),
      timeout_ms_(options_.timeout.count()) {
  init();
  auto& all = made();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.cores, [](const auto& each) { return each.expired(); });
  all.cores.push_back(core_);
}

Backend::~Backend() {
  if (is_forked()) {
    new std::shared_ptr<Core>(core_);  // a forked child has none of its threads, and is not the rank: it is left alone
    return;
  }
  if (progress_->on_own_thread()) {  // the last handle went in a callback, which cannot wait for its own thread to end
    std::thread([core = core_] { core->end(); }).detach();
    return;
  }
  shutdown();
}

void Backend::refuse_forked() const {
  if (is_forked()) {
    throw Exception(
        {Code::unsupported,
         "this process was forked after the group was made, and is not its rank: communicate in the parent, "
         "or start processes with spawn instead of fork"});
  }
}

std::shared_lock<std::shared_mutex> Backend::hold_open() {
  refuse_forked();
  std::shared_lock lock(core_->open_mutex);
  if (!core_->open) {
    throw Exception({Code::aborted, "this group was shut down"});
  }
  return lock;
}

Deadline Backend::deadline_for(std::chrono::milliseconds asked) const {
  const auto timeout = asked < std::chrono::milliseconds(0) ? std::chrono::milliseconds(timeout_ms_) : asked;
  return Deadline::after_or_never(timeout);
}

engine::CallSite Backend::site() const {
  const auto site = current_site();
  return site.file == nullptr && options_.where != nullptr ? options_.where() : site;
}

void Backend::check_possible(const PreparedCall& prepared) {
  throw_if_failed(engine::check_call(prepared.call, Rank{rank_}, size_));
  throw_if_failed(progress_->engine().can(prepared.call.op));
}

/// Of a group that was shut down nothing is touched: `run` fails then, and checks the call, too.
void Backend::run_blocking(const PreparedCall& prepared, std::chrono::milliseconds timeout) {
  refuse_forked();
  const auto deadline = deadline_for(timeout);
  if (prepared.overlaps(rank_)) {
    throw_if_failed(progress_->run([&](engine::Engine& engine) {
      auto apart = prepared;
      apart.separate(rank_);
      return engine.run(apart.call, deadline);
    }));
  } else {
    throw_if_failed(progress_->run(prepared.call, deadline));
  }
  if (!prepared.copy_back.empty()) {
    throw_if_failed(prepared.copy_results());
  }
}

void Backend::run_now(engine::Op op, const at::Tensor& tensor, const Reduce& reduce, Rank root,
                      engine::CallSite where) {
  PreparedCall prepared(engine::to_string(op));
  prepared.borrows = true;
  auto& call = prepared.call;
  call.op = op;
  call.reduce = reduce.op;
  call.factor = reduce.factor;
  prepared.read_as = reduce.read_as;
  call.root = root;
  call.site = where;
  const bool is_root = to_int(root) == rank_;
  prepared.add_in_place(tensor, op != engine::Op::broadcast || is_root,
                        op == engine::Op::all_reduce || (op == engine::Op::reduce ? is_root : !is_root));
  run_blocking(prepared, c10d::kUnsetTimeout);
}

void Backend::choose(engine::Op op, const engine::OpChoices& choices) {
  run_on_engine([&](engine::Engine& engine) { return engine.choose(op, choices); });
}

std::vector<engine::Links::Sent> Backend::sent() {
  std::vector<engine::Links::Sent> sent;
  run_on_engine([&](engine::Engine& engine) {
    sent = engine.sent();
    return Status();
  });
  return sent;
}

void Backend::barrier_now(engine::CallSite where) {
  PreparedCall prepared("barrier");
  prepared.call.site = where;
  run_blocking(prepared, c10d::kUnsetTimeout);
}

void Backend::run_on_engine(const engine::Progress::Task& task) {
  refuse_forked();
  throw_if_failed(progress_->run(task));
}

Backend::WorkPtr Backend::submit(const Operation& operation, PreparedCall prepared, const Tensors& outputs) {
  prepared.call.site = site();
  if (!operation.async) {
    run_and_tell(operation, [&] { run_blocking(prepared, operation.timeout); });
    return nullptr;
  }
  const auto open = hold_open();
  check_possible(prepared);
  const std::scoped_lock lock(submit_mutex_);
  auto work = make_work(operation.type, operation.title, outputs, next_sequence());
  auto shared = std::make_shared<PreparedCall>(std::move(prepared));
  const auto deadline = deadline_for(operation.timeout);
  progress_->submit(
      [shared, deadline, rank = rank_](engine::Engine& engine) {
        shared->separate(rank);
        auto status = engine.run(shared->call, deadline);
        return status ? shared->copy_results() : status;
      },
      finisher(work));
  return work;
}

Backend::WorkPtr Backend::submit_all(const Operation& operation, std::vector<PreparedCall> prepared,
                                     const Tensors& outputs) {
  {
    const auto where = site();
    const auto open = hold_open();
    for (auto& each : prepared) {
      each.call.site = where;
      check_possible(each);
    }
  }
  const auto deadline = deadline_for(operation.timeout);
  auto shared = std::make_shared<std::vector<PreparedCall>>(std::move(prepared));
  // All of them, also after a mismatch of one: ranks stay in step.
  const auto run_each = [shared, deadline, rank = rank_](engine::Engine& engine) {
    Status first;
    for (auto& each : *shared) {
      each.separate(rank);
      auto status = engine.run(each.call, deadline);
      status = status ? each.copy_results() : status;
      first = first ? status : first;
    }
    return first;
  };
  return submit_task(operation, run_each, outputs);
}

Backend::WorkPtr Backend::submit_task(const Operation& operation, engine::Progress::Task task, const Tensors& outputs) {
  if (!operation.async) {
    refuse_forked();
    run_and_tell(operation, [&] { throw_if_failed(progress_->run(task)); });
    return nullptr;
  }
  const auto open = hold_open();
  const std::scoped_lock lock(submit_mutex_);
  auto work = make_work(operation.type, operation.title, outputs, next_sequence());
  progress_->submit(std::move(task), finisher(work));
  return work;
}

c10::intrusive_ptr<BackendWork> Backend::make_work(c10d::OpType type, const char* title, const Tensors& outputs,
                                                   std::uint64_t sequence) {
  auto work = c10::make_intrusive<BackendWork>(rank_, type, title, outputs, sequence);
  work->set_progress({core_, progress_});
  const std::scoped_lock lock(coalescing_mutex_);
  if (const auto found = coalescing_.find(std::this_thread::get_id()); found != coalescing_.end()) {
    constexpr std::size_t kMost = 65536;  // more than any batch: one that was never ended must not keep all tensors
    if (found->second.size() < kMost) {
      found->second.push_back(work);
    } else {
      coalescing_.erase(found);
    }
  }
  return work;
}

/// Called by a thread of the engine, perhaps after this backend has gone. What users hung on the end is not run there:
/// it may wait for what that thread has to do.
engine::Done Backend::finisher(const c10::intrusive_ptr<BackendWork>& work) const {
  return [work, callbacks = core_->callbacks, told = told_](const Status& status) {
    const auto tell = [work, told] {
      if (told) {
        told->tell(std::make_shared<c10d::WorkInfo>(work->info()));
      }
    };
    if (work->complete_alone(status)) {
      tell();
      return;
    }
    callbacks->run([work, tell, status] {
      work->complete(status);
      tell();
    });
  };
}

template <class Run>
void Backend::run_and_tell(const Operation& operation, Run&& run) {
  if (!told_) {
    run();
    return;
  }
  const auto tell = [&, began = std::chrono::steady_clock::now()] {
    const auto ended = std::chrono::steady_clock::now();
    told_->tell(std::make_shared<c10d::WorkInfo>(operation.type, getSequenceNumberForGroup(), began, ended,
                                                 std::chrono::duration<float>(ended - began)));
  };
  try {
    run();
  } catch (...) {
    tell();
    throw;
  }
  tell();
}

SymmetricAllocator& Backend::allocator() {
  if (!allocator_) {
    throw Exception(
        {Code::unsupported, "symmetric memory: the ranks of this group are on several hosts and share none"});
  }
  return *allocator_;
}

std::shared_ptr<c10::Allocator> Backend::getMemAllocator() {
  (void)allocator();
  return allocator_;
}

at::Tensor Backend::allocateTensor(long size, at::TensorOptions options) { return allocator().empty({size}, options); }

bool Backend::reaches(const at::Tensor& tensor) const {
  return reach_ &&
         reach_->place_of(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()).has_value();
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) {
    return nullptr;
  }
  auto inner = options_;
  inner.timeout = options ? options->timeout : std::chrono::milliseconds(timeout_ms_);
  auto engine = options_.make_engine(store, to_rank(static_cast<std::size_t>(found - ranks.begin())),
                                     static_cast<int>(ranks.size()));
  return c10::make_intrusive<Backend>(std::move(engine), std::move(inner));
}

c10::intrusive_ptr<c10d::Backend::Options> Backend::getBackendOptions() {
  return c10::make_intrusive<Options>("tutti", std::chrono::milliseconds(timeout_ms_));
}

void Backend::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) {
  // Python's must not be copied by just any thread.
  told_ = std::make_shared<Told<std::shared_ptr<c10d::WorkInfo>>>(std::move(hook), core_->callbacks);
  onCompletionHook_ = [told = told_](const std::shared_ptr<c10d::WorkInfo>& info) { told->tell(info); };
}

void Backend::waitForPendingWorks() {
  {
    const auto open = hold_open();
    progress_->wait_idle();
  }
  core_->callbacks->wait_idle();
}

c10d::ErrorType Backend::getError() {
  const std::shared_lock lock(core_->open_mutex);
  const auto error = core_->open ? progress_->engine().broken() : std::nullopt;
  if (!error) {
    return c10d::ErrorType::SUCCESS;
  }
  return error->code == Code::timed_out   ? c10d::ErrorType::TIMEOUT
         : error->code == Code::peer_lost ? c10d::ErrorType::REMOTE_ERROR
                                          : c10d::ErrorType::COMM_ERROR;
}

void Backend::abort() {
  if (!is_forked()) {
    progress_->abort({Code::aborted, fmt::format("rank {} aborted the group", rank_), Rank{rank_}});
  }
}

void Backend::shutdown() {
  if (!is_forked()) {
    core_->end();
  }
}

void Backend::Core::end() {
  if (!open_mutex.try_lock()) {  // an operation is being started
    progress.end_pending();
    open_mutex.lock();
  }
  open = false;
  open_mutex.unlock();
  progress.stop();
  if (!progress.on_own_thread()) {  // else the destructor does it
    progress.close();
  }
  callbacks->stop();
}

void Backend::shut_down_all() {
  auto& all = made();
  std::vector<std::shared_ptr<Core>> left;
  {
    const std::scoped_lock lock(all.mutex);
    for (const auto& each : all.cores) {
      if (auto core = each.lock()) {
        left.push_back(std::move(core));
      }
    }
  }
  for (const auto& core : left) {
    core->end();
  }
}

}  // namespace tutti
