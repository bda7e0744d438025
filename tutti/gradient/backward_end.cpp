#include "tutti/gradient/backward_end.h"

#include <utility>
#include <vector>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

namespace tutti::gradient {
namespace {

using torch::autograd::Node;
using torch::autograd::utils::LambdaPostHook;

/// A pass whose end is awaited: by a callback of the engine, or by hooks. The engine drops its callbacks when a pass
/// fails, and this with them.
class Awaited : public std::enable_shared_from_this<Awaited> {
 public:
  explicit Awaited(std::weak_ptr<BackwardListener> listener) : listener_(std::move(listener)) {}
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

  ~Awaited() {
    if (auto listener = listener_.lock()) {
      listener->backward_failed();
    }
  }

  /// When the pass is over that runs now, the innermost.
  void await() {
    torch::autograd::Engine::get_default_engine().queue_callback([self = shared_from_this()] { self->arrive(); });
  }

 private:
  void arrive() {
    remove_hooks();
    if (const auto outer = torch::autograd::get_current_node()) {
      follow(*outer);
      return;
    }
    if (auto listener = std::exchange(listener_, {}).lock()) {
      listener->backward_ended();
    }
  }

  /// The pass was run by this node of another one. That one goes on with the nodes behind it; from there its end can be
  /// awaited.
  void follow(Node& outer) {
    followed_ = false;
    for (const auto& edge : outer.next_edges()) {
      if (edge.function) {
        const auto key = edge.function->add_post_hook(
            std::make_unique<LambdaPostHook>([self = shared_from_this()](const auto& outputs, const auto&) {
              if (!std::exchange(self->followed_, true)) {
                self->await();
              }
              return outputs;
            }));
        hooks_.emplace_back(edge.function.get(), key);
      }
    }
  }

  void remove_hooks() {
    for (const auto& [node, key] : std::exchange(hooks_, {})) {
      node->del_post_hook(key);
    }
  }

  std::weak_ptr<BackwardListener> listener_;
  std::vector<std::pair<Node*, std::uintptr_t>> hooks_;  // of a graph that its pass keeps alive
  bool followed_ = false;
};

}  // namespace

void tell_end_of_backward(std::weak_ptr<BackwardListener> listener) {
  std::make_shared<Awaited>(std::move(listener))->await();
}

}  // namespace tutti::gradient
