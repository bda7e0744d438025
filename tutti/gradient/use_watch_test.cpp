#include "tutti/gradient/use_watch.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tutti::gradient {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Adds its name to what is told, and uses the memory itself.
class Teller final : public UseListener {
 public:
  Teller(char name, std::vector<char>& told, torch::Tensor tensor = {})
      : name_(name), told_(told), tensor_(std::move(tensor)) {}

  void about_to_be_used(const c10::StorageImpl*) noexcept override {
    told_.push_back(name_);
    if (tensor_.defined()) {
      tensor_.add_(1);
    }
  }

 private:
  const char name_;
  std::vector<char>& told_;
  torch::Tensor tensor_;
};

TEST(UseWatch, TellsAllWhoWatchUntilTheyStop) {
  std::vector<char> told;
  const auto tensor = torch::ones({3});
  const auto other = torch::ones({3});
  const auto first = std::make_shared<Teller>('1', told);
  const auto second = std::make_shared<Teller>('2', told);
  watch_use(tensor.storage(), first);
  watch_use(tensor.storage(), second);
  (void)other.neg();
  EXPECT_THAT(told, IsEmpty());
  (void)tensor.neg();
  EXPECT_THAT(told, ElementsAre('1', '2'));
  stop_watching(tensor.storage(), first.get());
  told.clear();
  (void)tensor.neg();
  EXPECT_THAT(told, ElementsAre('2'));
  stop_watching(tensor.storage(), second.get());
  stop_watching(tensor.storage(), second.get());  // does no harm
  told.clear();
  (void)tensor.neg();
  EXPECT_THAT(told, IsEmpty());
}

TEST(UseWatch, StopsAsOftenAsItBegan) {
  std::vector<char> told;
  const auto tensor = torch::ones({3});
  const auto listener = std::make_shared<Teller>('1', told);
  watch_use(tensor.storage(), listener);
  watch_use(tensor.storage(), listener);
  stop_watching(tensor.storage(), listener.get());
  (void)tensor.neg();
  EXPECT_THAT(told, ElementsAre('1'));
  stop_watching(tensor.storage(), listener.get());
}

TEST(UseWatch, SeesViewsAndListsOnEveryThread) {
  std::vector<char> told;
  const auto tensor = torch::ones({4});
  const auto listener = std::make_shared<Teller>('1', told);
  const auto view = tensor.view({2, 2})[1];
  watch_use(tensor.storage(), listener);
  std::thread([&] { (void)view.neg(); }).join();
  EXPECT_THAT(told, ElementsAre('1'));
  told.clear();
  (void)torch::stack({torch::zeros({2}), view});
  EXPECT_FALSE(told.empty());
  stop_watching(tensor.storage(), listener.get());
}

TEST(UseWatch, ListenersUseTheMemoryThemselvesAndMayBeGone) {
  std::vector<char> told;
  const auto tensor = torch::ones({3});
  auto listener = std::make_shared<Teller>('1', told, tensor);
  const auto* const who = listener.get();
  watch_use(tensor.storage(), listener);
  EXPECT_GE(tensor.sum().item<float>(), 6) << "what the listener did came first";
  const auto times = told.size();
  EXPECT_GE(times, 1U);
  listener.reset();
  (void)tensor.neg();
  EXPECT_EQ(told.size(), times);
  stop_watching(tensor.storage(), who);
}

}  // namespace
}  // namespace tutti::gradient
